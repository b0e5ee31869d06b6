//! Swarms over an ideal network.

use std::collections::BTreeMap;

use proptest::prelude::*;
use swell_base::{Dur, Rate, Time};
use swell_workload::{
    Access, Action, Conn, End, Event, Info, Record, Remote, Swarm, SwarmConfig, Workload,
};

use crate::common::Ideal;

const DELAY: Dur = Dur::from_millis(20);
const PIECE: u64 = 16_397;
const REQUEST: u64 = 17;
const STATE: u64 = 5;
const BLOCK: f64 = 16_384.0;

fn config(peers: u32, slots: u32, seed: u64) -> SwarmConfig {
    let remote = |i: u32| Remote {
        access: Access::default(),
        share: Rate::from_bps([32, 96, 250, 1250][i as usize % 4] * 1000),
        seed: i % 5 == 4,
    };
    SwarmConfig {
        slots,
        pipeline: 10,
        upload: Some(Rate::from_bps(600_000)),
        download: Some(Rate::from_bps(2_000_000)),
        client: Access::default(),
        remotes: (0..peers).map(remote).collect(),
        reach: [Rate::from_bps(600_000), Rate::from_bps(6_000_000)],
        seed,
    }
}

type Sent = (Time, Conn, End, u64);

/// All bytes that were sent, with their instants, and the records.
fn play(config: SwarmConfig, seconds: u64) -> (Vec<Sent>, Vec<Record>) {
    let mut ideal = Ideal::new(Swarm::new(config), DELAY);
    assert!(ideal.run(Dur::from_secs(seconds)).is_empty());
    let sent = ideal.log.iter().filter_map(|(at, action)| match action {
        Action::Send(conn, end, n) => Some((*at, *conn, *end, *n)),
        _ => None,
    });
    let sent = sent.collect();
    ideal.workload.finish(&|_| Info::default());
    (sent, ideal.workload.take_records())
}

/// The largest number of bytes in any second that begins with one of these blocks.
fn most_in_a_second(at: &[Time]) -> f64 {
    let within = |i: usize| {
        at[i..]
            .iter()
            .take_while(move |t| t.since(at[i]) < Dur::from_secs(1))
    };
    let most = (0..at.len()).map(|i| within(i).count()).max();
    most.unwrap_or(0) as f64 * BLOCK
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The rules of the protocol, in any swarm: a block follows a request, while its sender unchokes; no more than
    /// `pipeline` are requested at a time; the client unchokes at most `slots`; caps hold in every second.
    #[test]
    fn the_rules_hold(
        peers in 1..30u32,
        slots in 1..8u32,
        pipeline in 1..10u32,
        upload in prop::option::of(50_000..3_000_000u64),
        download in prop::option::of(50_000..3_000_000u64),
        seed: u64,
    ) {
        let caps = [upload, download].map(|cap| cap.map(Rate::from_bps));
        let capped = SwarmConfig {
            pipeline,
            upload: caps[0],
            download: caps[1],
            ..config(peers, slots, seed)
        };
        let (sent, records) = play(capped, 30);
        let mut unchoked = BTreeMap::new();
        // Requests that an end has sent, and blocks that the other has.
        let mut asked: BTreeMap<(Conn, End), [u64; 2]> = BTreeMap::new();
        let (mut blocks, mut requests) = (Vec::new(), Vec::new());
        let mut bytes: BTreeMap<(Conn, End), [u64; 2]> = BTreeMap::new();
        let over = Time::ZERO + Dur::from_secs(30);
        for &(at, conn, by, n) in &sent {
            let to = if by == End::Client { End::Server } else { End::Client };
            match n {
                // The first is an unchoke, and then they alternate.
                STATE => {
                    let state = unchoked.entry((conn, by)).or_insert(false);
                    *state = !*state;
                }
                REQUEST => {
                    asked.entry((conn, by)).or_default()[0] += 1;
                    if by == End::Client { requests.push(at); }
                }
                PIECE => {
                    prop_assert_eq!(unchoked.get(&(conn, by)), Some(&true));
                    let [asked, answered] = asked.entry((conn, to)).or_default();
                    *answered += 1;
                    prop_assert!(answered <= asked);
                    if by == End::Client { blocks.push(at); }
                }
                _ => prop_assert!(false, "{n} bytes"),
            }
            let serving = unchoked.iter().filter(|((_, end), on)| *end == End::Client && **on);
            prop_assert!(serving.count() <= slots as usize);
            let total = bytes.entry((conn, by)).or_default();
            total[0] += n;
            if at + DELAY <= over { total[1] += n; }
        }
        for (cap, at) in [(caps[0], &blocks), (caps[1], &requests)] {
            if let Some(cap) = cap {
                prop_assert!(most_in_a_second(at) <= cap.bps() as f64 / 8.0 + BLOCK);
            }
        }
        // Every byte that had the time to arrive is in a record.
        let arrived = |by| -> u64 { bytes.iter().filter(|((_, end), _)| *end == by).map(|(_, n)| n[1]).sum() };
        let recorded = records.iter().map(|r| match r {
            Record::Flow(flow) => [flow.up, flow.down],
            Record::Request(_) => [0; 2],
        });
        let recorded = recorded.fold([0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
        prop_assert_eq!(recorded, [arrived(End::Client), arrived(End::Server)]);
        prop_assert_eq!(records.len(), peers as usize);
    }
}

/// Blocks that the client sent, and that its peers sent, before and after half a minute.
fn halves(seed: u64) -> [[f64; 2]; 2] {
    let config = SwarmConfig {
        download: None,
        ..config(40, 4, seed)
    };
    let (sent, _) = play(config, 150);
    let blocks = |by, from, to| {
        let within = |at: &Time| (from..to).contains(&at.as_secs_f64());
        let blocks = sent
            .iter()
            .filter(|(at, _, end, n)| *end == by && *n == PIECE && within(at));
        blocks.count() as f64 / (to - from)
    };
    // The first two seconds hold the begin of the connections.
    [End::Client, End::Server].map(|by| [blocks(by, 2.0, 30.0), blocks(by, 30.0, 150.0)])
}

#[test]
fn a_run_begins_in_steady_state() {
    let all: Vec<_> = (0..40).map(halves).collect();
    for (way, name) in ["up", "down"].iter().enumerate() {
        let sum = |part: usize| all.iter().map(|h| h[way][part]).sum::<f64>() / 40.0;
        let ratio = sum(0) / sum(1);
        assert!(
            (0.92..1.08).contains(&ratio),
            "{name}: {ratio} of {}",
            sum(1)
        );
    }
    // What a run downloads depends on its luck with peers: seeds are replications.
    let mut down: Vec<f64> = all.iter().map(|h| h[1][1]).collect();
    down.sort_by(f64::total_cmp);
    assert!(down[35] > 1.1 * down[4], "{down:?}");
}

#[test]
fn a_client_uses_its_upload_up_to_the_cap() {
    let up = halves(1)[0][1] * BLOCK * 8.0;
    assert!((0.98 * 600e3..=600e3).contains(&up), "{up}");
}

#[test]
fn equal_seeds_give_equal_runs() {
    let [a, b, c] = [7, 7, 8].map(|seed| play(config(20, 4, seed), 40));
    assert!(a == b);
    assert_ne!(a.0, c.0);
}

/// A client that gives nothing gets only what is given to everybody.
#[test]
fn who_gives_gets() {
    let down = |upload| {
        let one = |seed| {
            let config = SwarmConfig {
                upload: Some(Rate::from_bps(upload)),
                download: None,
                ..config(40, 4, seed)
            };
            let (sent, _) = play(config, 60);
            let blocks = sent.iter().filter(|s| s.2 == End::Server && s.3 == PIECE);
            blocks.count()
        };
        (0..10).map(one).sum::<usize>() as f64
    };
    let [little, much] = [10_000, 2_000_000].map(down);
    assert!(much > 1.5 * little, "{little} {much}");
}

#[test]
fn a_lost_connection_begins_anew() {
    let mut swarm = Swarm::new(config(1, 4, 1));
    let at = |s| Time::ZERO + Dur::from_secs(s);
    let mut handle = |now, event| {
        let mut actions = Vec::new();
        swarm.handle(now, event, &mut actions);
        actions
    };
    let starts = handle(at(0), Event::Start);
    let timers = starts.iter().filter_map(|a| match a {
        Action::Timer(after, token) => Some((*after, *token)),
        _ => None,
    });
    // Only the begin of the connection is due within the first second in every run; its token is that of the link.
    let begin = timers.map(|t| t.1).find(|t| t >> 32 == 0).unwrap();
    let opened = handle(at(1), Event::Timer(begin));
    assert!(
        matches!(opened[..], [Action::Connect(Conn(0), _)]),
        "{opened:?}"
    );
    handle(at(1), Event::Connected(Conn(0), End::Client));
    handle(at(1), Event::Connected(Conn(0), End::Server));
    let lost = handle(at(2), Event::Reset(Conn(0), End::Client));
    let [Action::Timer(after, again)] = lost[..] else {
        panic!("{lost:?}")
    };
    assert_eq!(after, Dur::from_secs(30));
    assert_eq!(handle(at(2), Event::Reset(Conn(0), End::Server)), []);
    let anew = handle(at(32), Event::Timer(again));
    assert!(
        matches!(anew[..], [Action::Connect(Conn(1), _)]),
        "{anew:?}"
    );
    assert_eq!(handle(at(33), Event::Received(Conn(0), End::Client, 5)), []);
    handle(at(33), Event::Connected(Conn(1), End::Client));
    handle(at(33), Event::Connected(Conn(1), End::Server));
    // As soon as the remote peer serves it, the client asks for blocks again.
    let rounds = (0..200).map(|round| handle(at(34 + 10 * round), Event::Timer(2 << 32)));
    let unchoke = Action::Send(Conn(1), End::Server, STATE);
    assert!(rounds.into_iter().any(|actions| actions.contains(&unchoke)));
    let asked = handle(at(2_100), Event::Received(Conn(1), End::Client, STATE));
    let request = Action::Send(Conn(1), End::Client, REQUEST);
    assert!(asked.contains(&request), "{asked:?}");
    assert_eq!(swarm.take_records().len(), 1);
}
