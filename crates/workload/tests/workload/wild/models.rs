//! Arbitrary valid models and their required behaviour, shared by the tests and the fuzz target.

use std::sync::Arc;

use swell_base::Dur;
use swell_traffic::{
    Class, Connection, Datagrams, Exchange, Group, Knobs, Load, Model, Network, Parameters, Path,
    Provenance, Run, Schedule, Session, Totals, Turn, Unit, Wait, Wire, Write,
};
use swell_workload::{Record, Structural};

use crate::common::Ideal;

/// A source of bytes; zeros when the data is used up.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }
    /// A number below `n`.
    fn below(&mut self, n: u8) -> u8 {
        self.next() % n
    }
    /// A pause of up to three seconds; short ones are the most frequent.
    fn pause(&mut self) -> Dur {
        let b = u64::from(self.next());
        Dur::from_micros(match b >> 6 {
            0 => 0,
            1 => b,
            2 => b * 150,
            _ => b * 12_000,
        })
    }
    /// A size of zero, few or many bytes.
    fn size(&mut self) -> u64 {
        let b = u64::from(self.next());
        match b >> 6 {
            0 => 0,
            1 => 1,
            2 => b * 11,
            _ => b * 4_000,
        }
    }
}

fn exchange(b: &mut Bytes<'_>, udp: bool) -> Exchange {
    match (udp, b.below(4)) {
        (false, 0) => Exchange::Attempt {
            retries: (0..b.below(4)).map(|_| b.pause()).collect(),
            refused: b.below(2) == 1,
        },
        (false, 1) => {
            // A unit never waits for a later unit of the other end, because all units are created in one common order.
            let mut chains: [Vec<Unit>; 2] = Default::default();
            for _ in 0..b.below(9) {
                let end = usize::from(b.below(2));
                let there = chains[1 - end].len() as u32;
                let least = chains[end].last().map_or(0, |u| u.after);
                let after = least.max(there - u32::from(b.below(3)).min(there));
                chains[end].push(Unit {
                    pause: b.pause(),
                    bytes: b.size(),
                    after,
                });
            }
            let [up, down] = chains;
            Exchange::Concurrent { up, down }
        }
        (true, 1) => {
            let mut run = || {
                let packets = 1 + u32::from(b.below(20));
                let least = u32::from(b.next());
                let most = least + u32::from(b.next());
                let room = u64::from(packets) * u64::from(most - least);
                Run {
                    pause: b.pause(),
                    span: if packets == 1 { Dur::ZERO } else { b.pause() },
                    packets,
                    bytes: u64::from(packets) * u64::from(least) + room * u64::from(b.next()) / 255,
                    sizes: [least, most],
                }
            };
            let runs = [vec![run(), run()], vec![run()]];
            Exchange::Datagrams(Datagrams {
                packets: Vec::new(),
                runs,
            })
        }
        (true, 2 | 3) => {
            let packets =
                (0..b.below(12)).map(|_| (b.pause(), b.below(2) == 1, u32::from(b.next())));
            Exchange::Datagrams(Datagrams {
                packets: packets.collect(),
                runs: Default::default(),
            })
        }
        _ => {
            let turns = (0..b.below(6)).map(|_| Turn {
                request: b.size(),
                server_think: b.pause(),
                response: b.size(),
                client_think: b.pause(),
            });
            Exchange::Sequential(turns.collect())
        }
    }
}

/// Turns that wait for other connections, in any order that a file may have.
fn waits(b: &mut Bytes<'_>, exchange: &Exchange) -> Vec<Wait> {
    let Exchange::Sequential(turns) = exchange else {
        return Vec::new();
    };
    if b.below(2) == 0 {
        return Vec::new();
    }
    let mut page = u32::from(b.below(3));
    let mut waits = Vec::new();
    for turn in 0..turns.len().max(1) as u32 {
        if turn == 0 || b.below(2) == 1 {
            let pause = b.pause();
            waits.push(Wait { turn, page, pause });
        }
        page += u32::from(b.below(3));
    }
    waits
}

fn connection(b: &mut Bytes<'_>, udp: bool) -> Connection {
    let gap = b.pause();
    let exchange = exchange(b, udp);
    let units = exchange.units();
    let overlap = (b.below(3) == 0).then(|| units.map(|n| u32::from(b.next()) % (n as u32 + 1)));
    let waits = match udp {
        true => Vec::new(),
        false => waits(b, &exchange),
    };
    let mut write = || Write {
        after: 1 + u64::from(b.next()) * 300,
        gap: b.pause(),
    };
    let writes = match udp {
        true => Default::default(),
        false => [vec![write()], vec![write(), write()]],
    };
    Connection {
        gap,
        server: u32::from(b.below(2)),
        exchange,
        client_window: u32::from(b.next()) * 500,
        server_window: u32::from(b.next()) * 500,
        wire: Wire::default(),
        writes,
        waits,
        left_censored: false,
        right_censored: false,
        overlap,
    }
}

/// The model encoded by these bytes.
pub fn model(data: &[u8]) -> Model {
    let b = &mut Bytes(data);
    let path = Path {
        rtt: Dur::from_millis(u64::from(b.next())),
        up: None,
        down: None,
        loss_up: 0.0,
        loss_down: 0.0,
        rtt_samples: 9,
        capacity_samples: 0,
        loss_samples: 0,
    };
    let mut sessions: Vec<Session> = (0..1 + b.below(4))
        .map(|_| {
            let class = u32::from(b.below(2));
            let groups = 1 + b.below(4);
            Session {
                class,
                start: b.pause() * 3,
                weight: 1.0 + f64::from(b.below(3)) / 2.0,
                client: 0,
                outside: b.below(2) == 1,
                lasted: None,
                groups: (0..groups)
                    .map(|_| {
                        let think = b.pause();
                        let n = 1 + b.below(3);
                        let connections = (0..n).map(|_| connection(b, class == 1)).collect();
                        Group { think, connections }
                    })
                    .collect(),
            }
        })
        .collect();
    sessions.sort_by_key(|s| s.start);
    let class = |name: &str, udp| Class {
        name: name.into(),
        udp,
    };
    Model {
        name: "wild".into(),
        provenance: Provenance::default(),
        warnings: Vec::new(),
        duration: Dur::from_secs(10),
        parameters: Parameters {
            group_timeout: Dur::from_secs(30),
            session_timeout: Dur::from_secs(300),
            quiet: Dur::from_millis(500),
        },
        totals: Totals::default(),
        load: Load::default(),
        classes: vec![class("http", false), class("dns", true)],
        client_paths: vec![path],
        server_paths: vec![path; 2],
        sessions,
    }
}

/// Runs ten seconds of session starts of a model over a loss-free network, until everything has finished. Every
/// connection of every session must be opened once and carry its data.
///
/// # Panics
/// If one does not.
pub fn played(model: &Model, seed: u64) {
    model.check().expect("a sound model");
    let knobs = Knobs {
        phase: Some(Dur::ZERO),
        ..Knobs::default()
    };
    let schedule = Schedule::cold(model, &knobs, seed, model.duration, &Network::default())
        .expect("a schedule");
    // Each session once.
    let schedule = Schedule {
        lasting: Vec::new(),
        ..schedule
    };
    let model = Arc::new(model.clone());
    let mut network = Ideal::new(
        Structural::new(Arc::clone(&model), &schedule),
        Dur::from_millis(20),
    );
    // The sum of all pauses is a few minutes at most.
    let records = network.run(Dur::from_secs(3_600));
    let mut carried: Vec<(u32, u64, u64)> = Vec::new();
    for record in records {
        let Record::Flow(flow) = record else {
            panic!("{record:?}")
        };
        assert!(flow.end.is_some_and(|end| end >= flow.start), "{flow:?}");
        carried.push((flow.class, flow.up, flow.down));
    }
    let starts = schedule.starts.iter();
    let sessions = starts.map(|start| &model.sessions[start.session as usize]);
    let mut datagrams = 0;
    for session in sessions {
        for c in session.connections() {
            if matches!(
                c.exchange,
                Exchange::Attempt { .. } | Exchange::Datagrams(_)
            ) {
                datagrams += 1;
                continue;
            }
            let [up, down] = c.exchange.bytes();
            let expected = (session.class, up, down);
            let found = carried.iter().position(|&flow| flow == expected);
            let found = found.unwrap_or_else(|| panic!("{:?} is not played: {carried:?}", c));
            carried.swap_remove(found);
        }
    }
    // The last datagrams of a flow are in flight when it ends, and the workload does not wait for them.
    assert_eq!(carried.len(), datagrams, "{carried:?}");
}
