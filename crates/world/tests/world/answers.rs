//! What a server sends when a request reaches it.
//!
//! The oracle is Linux 6.18 in network namespaces: in quick mode its kernel acknowledges a request at once, before the
//! program can answer. The first answer makes the connection interactive, and later ones carry the acknowledgement.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use swell_base::{Dur, Flags, Packet, Rate, Tag, Time};
use swell_path::LinkConfig;
use swell_tcp::Config;
use swell_workload::{Action, Conn, End, Event, Info, Record, Workload};
use swell_world::{Parties, Tap, World};

const REQUEST: u64 = 300;
const ANSWER: u64 = 4000;

/// Two requests, one after the other, over one connection.
#[derive(Default)]
struct Twice {
    received: u64,
}

impl Workload for Twice {
    fn handle(&mut self, _: Time, event: Event, actions: &mut Vec<Action>) {
        let ask = Action::Send(Conn(0), End::Client, REQUEST);
        match event {
            Event::Start => {
                actions.push(Action::Connect(Conn(0), Box::default()));
                actions.push(ask);
            }
            Event::Received(conn, End::Server, _) => {
                actions.push(Action::Send(conn, End::Server, ANSWER));
            }
            Event::Received(_, End::Client, n) => {
                self.received += n;
                if self.received == ANSWER {
                    actions.push(ask);
                }
            }
            _ => {}
        }
    }
    fn take_records(&mut self) -> Vec<Record> {
        Vec::new()
    }
    fn finish(&mut self, _: &dyn Fn(Conn) -> Info) {}
}

/// Reports the payloads of the server's segments after its SYN.
struct Payloads(Sender<u32>);

impl Tap for Payloads {
    fn packet(&mut self, _: Time, _: &Parties, _: bool, _: &Packet) {}

    fn arrival(&mut self, _: Time, _: &Parties, to_server: bool, packet: &Packet) {
        if !to_server && !packet.seg.flags.has(Flags::SYN) {
            self.0.send(packet.seg.len).expect("somebody listens");
        }
    }
}

fn payloads(tcp: Config) -> Vec<u32> {
    let link = LinkConfig {
        rate: Some(Rate::from_bps(10_000_000)),
        delay: Dur::from_millis(10),
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], 1);
    let (tell, seen) = channel();
    world.set_tap(Box::new(Payloads(tell)));
    world.add(Box::new(Twice::default()), Tag::Foreground, Arc::new(tcp));
    world.advance(Time::ZERO + Dur::from_secs(2));
    seen.try_iter().collect()
}

#[test]
fn the_first_request_is_acknowledged_before_its_answer() {
    let answer = [1448, 1448, 1104];
    assert_eq!(
        payloads(Config::linux()),
        [&[0][..], &answer, &answer].concat()
    );
}

/// A delayed acknowledgement, or an ns-2 agent's, travels on the answer.
#[test]
fn what_is_not_due_at_once_travels_on_the_answer() {
    let delayed = Config {
        quick_acks: 0,
        recv_tuning: false,
        ..Config::linux()
    };
    let ns2 = Config {
        quick_acks: 1,
        ..Config::ns2_modern()
    };
    for tcp in [delayed, ns2, Config::quic()] {
        assert!(!payloads(tcp).contains(&0));
    }
}
