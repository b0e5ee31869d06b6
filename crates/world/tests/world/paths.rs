//! Capacity and loss of a host's access path apply to their own direction only.

use std::sync::Arc;

use swell_base::{Dur, QueueLimit, Rate, Tag, Time};
use swell_path::LinkConfig;
use swell_tcp::Config;
use swell_traffic::{Knobs, Model, Network, Schedule};
use swell_workload::{FlowRecord, Record, Structural};
use swell_world::World;

/// Runs one exchange between a client and a server, each with a path `[rtt, up, down, loss up, loss down]`.
fn play(
    client: &str,
    server: &str,
    class: &str,
    udp: bool,
    exchange: &str,
    outside: bool,
) -> FlowRecord {
    let text = format!(
        r#"{{"format":"swell-traffic-model","version":3,"name":"path","provenance":
        {{"made_by":"by hand","sources":[],"digests":[],"note":""}},"warnings":[],"duration":100000000,
        "parameters":{{"group_timeout":30000000,"session_timeout":300000000,"quiet":500000}},
        "totals":{{"packets":[0,0],"bytes":[0,0],"tcp_connections":1,"tcp_handshakes":1,
        "udp_flows":0,"unmodelled_packets":0,"unmodelled_bytes":0}},
        "load":{{"bin":100000,"bytes":[[],[]],"lsd_bin":1000,"lsd":[[],[]]}},
        "classes":[{{"name":"{class}","udp":{udp}}}],
        "client_paths":[[{client},9,12,40]],"server_paths":[[{server},9,0,40]],
        "sessions":[{{"class":0,"start":0,"client":0,"outside":{outside},"groups":[{{"think":0,"connections":
        [{{"gap":0,"server":0,{exchange}}}]}}]}}]}}"#
    );
    let model = Model::from_slice(text.as_bytes()).expect("a sound model");
    let knobs = Knobs {
        phase: Some(Dur::ZERO),
        ..Knobs::default()
    };
    let schedule = Schedule::draw(&model, &knobs, 1, Dur::from_secs(90), &Network::default())
        .expect("a schedule");
    let machine = Structural::new(Arc::new(model), &schedule);
    let link = LinkConfig {
        rate: Some(Rate::from_bps(1_000_000_000)),
        queue: QueueLimit::Packets(100_000),
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], 1);
    let index = world.add(
        Box::new(machine),
        Tag::Background,
        Arc::new(Config::linux()),
    );
    world.advance(Time::ZERO + Dur::from_secs(400));
    world.finish();
    let flows = world.take_records(index).into_iter();
    let mut flows = flows.filter_map(|r| match r {
        Record::Flow(flow) => Some(flow),
        Record::Request(_) => None,
    });
    flows.next().expect("the flow")
}

const FREE: &str = "10000,null,null,0,0";

/// Ten thousand datagrams in each direction over a path with loss in one. That direction loses its share, the other
/// nothing.
#[test]
fn losses_are_of_their_own_direction() {
    let run = "[0,50000000,10000,1000000,100,100]";
    let exchange = format!(r#""runs":[[{run}],[{run}]]"#);
    // Loss from the host, loss to the host. At 5 %, 500 of 10 000 are lost, give or take 4 standard deviations of 22.
    for (client, server, lost_up, lost_down) in [
        ("10000,null,null,0.05,0", FREE, true, false),
        ("10000,null,null,0,0.05", FREE, false, true),
        (FREE, "10000,null,null,0.05,0", false, true),
        (FREE, "10000,null,null,0,0.05", true, false),
    ] {
        for outside in [false, true] {
            let flow = play(client, server, "dns", true, &exchange, outside);
            for (got, lossy) in [(flow.up, lost_up), (flow.down, lost_down)] {
                let lost = 10_000 - got / 100;
                // The test does not wait for the last datagrams in flight.
                let expected = if lossy { 412..=592 } else { 0..=4 };
                assert!(expected.contains(&lost), "{client} {server}: {lost} lost");
            }
        }
    }
}

/// A megabyte over an access link of 2 Mbit/s takes four seconds in the direction of that link, and hardly any time
/// in the other.
#[test]
fn capacities_are_of_their_own_direction() {
    let up = r#""turns":[[1000000,0,100,0]]"#;
    let down = r#""turns":[[100,0,1000000,0]]"#;
    for (client, server, exchange, slow) in [
        ("10000,2000000,null,0,0", FREE, up, true),
        ("10000,2000000,null,0,0", FREE, down, false),
        ("10000,null,2000000,0,0", FREE, up, false),
        ("10000,null,2000000,0,0", FREE, down, true),
        (FREE, "10000,2000000,null,0,0", up, false),
        (FREE, "10000,2000000,null,0,0", down, true),
        (FREE, "10000,null,2000000,0,0", up, true),
        (FREE, "10000,null,2000000,0,0", down, false),
    ] {
        for outside in [false, true] {
            let flow = play(client, server, "http", false, exchange, outside);
            assert_eq!(flow.up + flow.down, 1_000_100);
            let end = flow.end.expect("it is over");
            let seconds = end.since(flow.start).as_secs_f64();
            // 1500 bytes on the link per 1448 of payload. Slow start and losses at its queue cost a few more round
            // trips.
            let ideal = 8e6 / 2e6 * 1500.0 / 1448.0;
            if slow {
                assert!(
                    (ideal..1.25 * ideal).contains(&seconds),
                    "{client} {server}: {seconds} s"
                );
            } else {
                assert!(seconds < 0.5, "{client} {server}: {seconds} s");
            }
        }
    }
}

/// How long an exchange takes whose server is 40 ms away, behind a line of this capacity.
fn lasts(line: &str, exchange: &str) -> f64 {
    let far = format!("40000,{line},null,0,0");
    let flow = play(
        "55,null,null,0,0",
        &far,
        "other-tcp",
        false,
        exchange,
        false,
    );
    flow.end
        .expect("it is over")
        .since(flow.start)
        .as_secs_f64()
}

/// A reply of several writes, 120 us apart, leaves in one flight like a reply of one write, although the flight is
/// larger than an initial window. Both ends send at once, or take turns.
#[test]
fn the_writes_of_a_reply_do_not_wait_for_acknowledgements() {
    const LINE: &str = "100000000";
    let replies = 20;
    let join = |item: &dyn Fn(usize) -> String| {
        let items: Vec<String> = (0..replies).map(item).collect();
        items.join(",")
    };
    let chains = |writes: usize, pause: u64, down: String| {
        let up = join(&|i| format!("[{pause},8,{}]", i * writes));
        format!(r#""up":[{up}],"down":[{down}]"#)
    };
    let rest = |after: usize| format!(",[120,8200,{after}]").repeat(4);
    let whole = lasts(
        LINE,
        &chains(1, 200_000, join(&|i| format!("[5000,41000,{}]", i + 1))),
    );
    let parts = join(&|i| format!("[5000,8200,{}]{}", i + 1, rest(i + 1)));
    let units = lasts(LINE, &chains(5, 200_000, parts));
    let between = "[0,120,8200,0],".repeat(3);
    let turn = |_| format!("[8,5000,8200,0],{between}[0,120,8200,200000]");
    let turns = lasts(LINE, &format!(r#""turns":[{}]"#, join(&turn)));
    // The first replies exceed the congestion window, which grows at another pace with other segments. Later ones take
    // a millisecond more, for four pauses and the time of a segment on the line.
    let round_trips = 2.5 * 0.040 / replies as f64;
    for parted in [units, turns] {
        let longer = (parted - whole) / replies as f64;
        assert!(
            longer.abs() < 0.001 + round_trips,
            "{longer} s each: {parted} s, {whole} s"
        );
    }
}

/// The congestion window holds back a large unit for some round trips. The pause after it counts from its last byte
/// leaving and not from the acknowledgement, nor from the write.
#[test]
fn a_pause_after_a_large_unit_counts_from_its_last_byte() {
    let chains = |down: &str| lasts("null", &format!(r#""up":[[0,8,0]],"down":[{down}]"#));
    let one = chains("[0,300000,1]");
    let two = chains("[0,300000,1],[12000,1000,1]");
    let later = two - one;
    assert!(
        (0.011..0.016).contains(&later),
        "{later} s: {two} s, {one} s"
    );
    let turns = |rest: &str| lasts("null", &format!(r#""turns":[[8,0,300000,0]{rest}]"#));
    let paused = turns(",[0,12000,1000,0]") - turns("");
    assert!((0.011..0.016).contains(&paused), "{paused} s");
}
