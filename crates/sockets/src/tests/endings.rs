//! How connections end.

use rustix::net::{Shutdown, shutdown};
use swell_base::{Code, Dur};
use swell_workload::{Action, Conn, End, Event, Info};

use super::common::{Script, carrier, run_until};

const C: Conn = Conn(0);

fn connect(n: u32) -> Action {
    Action::Connect(Conn(n), Box::default())
}

/// Events without byte counts and facts.
fn shape(events: &[Event]) -> Vec<Event> {
    let plain = |e: &Event| match *e {
        Event::Received(conn, end, _) => Event::Received(conn, end, 0),
        Event::Closed(conn, _) => Event::Closed(conn, Info::default()),
        other => other,
    };
    let mut shape: Vec<Event> = events.iter().map(plain).collect();
    shape.dedup();
    shape
}

#[test]
fn a_refused_connection_is_reset_at_its_client() {
    let (script, log) = Script::new(|_, event, actions| match event {
        Event::Start => actions.push(connect(0)),
        Event::Connected(conn, End::Client) => actions.push(Action::Close(conn, End::Client)),
        Event::Eof(conn, End::Server) => actions.push(Action::Close(conn, End::Server)),
        Event::Closed(C, _) => actions.push(Action::Timer(Dur::from_millis(100), 0)),
        Event::Timer(_) => actions.push(connect(1)),
        _ => {}
    });
    let mut carrier = carrier(script);
    run_until(&mut carrier, || {
        log.has(|e| matches!(e, Event::Closed(C, _)))
    });
    // The listener was created for the first connection; now it stops listening.
    shutdown(&carrier.listeners[0].fd, Shutdown::Both).unwrap();
    log.take();
    run_until(&mut carrier, || {
        log.has(|e| matches!(e, Event::Closed(Conn(1), _)))
    });
    assert_eq!(
        log.take(),
        [
            Event::Timer(0),
            Event::Reset(Conn(1), End::Client),
            Event::Closed(Conn(1), Info::default())
        ]
    );
    assert_eq!((carrier.open_flows(), carrier.waiting.len()), (0, 0));
    let report = carrier.report();
    assert_eq!((report.counts.failed, report.counts.resets), (1, 1));
    assert!(
        report
            .warnings
            .iter()
            .any(|w| w.message.contains("refused"))
    );
}

#[test]
fn an_aborted_connection_is_reset_at_its_server() {
    let (script, log) = Script::new(|_, event, actions| match event {
        Event::Start => {
            actions.push(connect(0));
            actions.push(Action::Send(C, End::Client, 1000));
        }
        Event::Received(conn, End::Server, 1000) => actions.push(Action::Abort(conn)),
        _ => {}
    });
    let mut carrier = carrier(script);
    run_until(&mut carrier, || log.has(|e| matches!(e, Event::Closed(..))));
    let events = log.take();
    let without_drained: Vec<Event> = shape(&events)
        .into_iter()
        .filter(|e| !matches!(e, Event::Drained(..)))
        .collect();
    assert_eq!(
        without_drained,
        [
            Event::Start,
            Event::Connected(C, End::Client),
            Event::Connected(C, End::Server),
            Event::Received(C, End::Server, 0),
            Event::Reset(C, End::Server),
            Event::Closed(C, Info::default()),
        ]
    );
    let Some(Event::Closed(_, info)) = events.last() else {
        panic!("{events:?}");
    };
    assert_eq!(info.received, [0, 1000]);
    assert!(info.min_rtt.is_some(), "of the socket that is closed");
    assert_eq!(carrier.open_flows(), 0);
}

#[test]
fn a_connection_aborted_at_once_is_over_without_its_server() {
    let (script, log) = Script::new(|_, event, actions| {
        if event == Event::Start {
            actions.push(connect(0));
            actions.push(Action::Abort(C));
        }
    });
    let mut carrier = carrier(script);
    run_until(&mut carrier, || log.has(|e| matches!(e, Event::Closed(..))));
    assert!(!log.has(|e| matches!(e, Event::Connected(..))));
    assert_eq!((carrier.open_flows(), carrier.waiting.len()), (0, 0));
}

#[test]
fn a_peer_that_resets_is_told_with_what_arrived_before() {
    let (script, log) = Script::new(|_, event, actions| match event {
        Event::Start => {
            actions.push(connect(0));
            actions.push(Action::Send(C, End::Client, 10));
        }
        Event::Received(conn, End::Server, _) => actions.push(Action::Send(conn, End::Server, 777)),
        _ => {}
    });
    let mut carrier = carrier(script);
    run_until(&mut carrier, || {
        log.has(|e| matches!(e, Event::Received(_, End::Client, 777)))
    });
    // The server's process dies: the kernel closes its socket.
    carrier.slots.at(0).ends[1].close();
    carrier.slots.at(0).ends[1].set(super::super::slots::bits::DEAD);
    run_until(&mut carrier, || log.has(|e| matches!(e, Event::Closed(..))));
    let events = log.take();
    assert_eq!(
        shape(&events[events.len() - 2..]),
        [
            Event::Reset(C, End::Client),
            Event::Closed(C, Info::default())
        ]
    );
    assert_eq!(carrier.open_flows(), 0);
}

#[test]
fn a_half_closed_connection_goes_on_in_the_other_direction() {
    let answer = 3_000_000;
    let (script, log) = Script::new(move |_, event, actions| match event {
        Event::Start => {
            actions.push(connect(0));
            actions.push(Action::Send(C, End::Client, 1000));
            actions.push(Action::Close(C, End::Client));
            // Nothing can be sent after that.
            actions.push(Action::Send(C, End::Client, 1000));
        }
        Event::Eof(conn, End::Server) => {
            actions.push(Action::Send(conn, End::Server, answer));
            actions.push(Action::Close(conn, End::Server));
        }
        _ => {}
    });
    let mut carrier = carrier(script);
    run_until(&mut carrier, || log.has(|e| matches!(e, Event::Closed(..))));
    let events = log.take();
    let Some(Event::Closed(_, info)) = events.last() else {
        panic!("{events:?}");
    };
    assert_eq!(info.received, [answer, 1000]);
    let place = |event: Event| events.iter().position(|e| *e == event);
    assert!(place(Event::Eof(C, End::Server)) < place(Event::Eof(C, End::Client)));
    assert_eq!(log.count(|e| matches!(e, Event::Reset(..))), 0);
}

#[test]
fn without_descriptors_connections_fail_and_are_counted() {
    let (script, log) = Script::new(|_, event, actions| match event {
        Event::Start => {
            for n in 0..5 {
                actions.push(connect(n));
                actions.push(Action::Send(Conn(n), End::Client, 100));
            }
            actions.push(Action::Datagrams(Conn(5), Box::default()));
            actions.push(Action::SendDatagram(Conn(5), End::Client, 100));
        }
        Event::Received(conn, End::Server, _) => actions.push(Action::Close(conn, End::Server)),
        _ => {}
    });
    let mut carrier = carrier(script);
    carrier.descriptors.allow(3);
    run_until(&mut carrier, || {
        log.count(|e| matches!(e, Event::Received(..))) == 3
    });
    let events = log.take();
    for n in 3..5 {
        assert!(events.contains(&Event::Reset(Conn(n), End::Client)));
    }
    let report = carrier.report();
    assert_eq!(report.counts.without_descriptors, 3);
    assert!(
        report
            .warnings
            .iter()
            .any(|w| w.code == Code::NoDescriptors)
    );
    assert_eq!(carrier.open_flows(), 3);
    carrier.finish();
    assert_eq!(carrier.open_flows(), 0);
}
