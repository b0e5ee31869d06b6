//! Requests of real programs as rows of the table `requests`.

use std::collections::{BTreeMap, BTreeSet};

use swell_base::{Code, Dur, Time, Warning};
use swell_experiment::observe::{Outcome, Request};

use super::exit::Exit;
use super::place::is_client;
use super::unrequested;
use crate::turns::CHANGED;
use crate::{Connection, Conversations, Ending, Exchange, Label, Late};

/// If lateness could have changed more than this share of the requests or packets, the run must not decide a verdict.
/// This is half of the share above the highest percentile that is judged.
const LATE: f64 = 0.025;
/// The connections that the client opened. Their numbers are those of the column `client`.
pub(super) fn connections(conversations: &Conversations) -> impl Iterator<Item = &Connection> {
    let all = conversations.connections.iter();
    all.filter(|c| is_client(c.client.0))
}

/// The exchanges that the client began, each with the number of its conversation and its number in it.
fn exchanges(conversations: &Conversations) -> impl Iterator<Item = (usize, usize, &Exchange)> {
    let connections = connections(conversations).map(|c| (c.client.0, &c.exchanges));
    let datagrams = conversations
        .datagrams
        .iter()
        .map(|d| (d.client, &d.exchanges));
    let ours = connections.chain(datagrams).filter(|c| is_client(c.0));
    ours.enumerate()
        .flat_map(|(c, (_, all))| all.iter().enumerate().map(move |(i, e)| (c, i, e)))
}

/// How long the client can have waited for something that began at `start` and was observed until `until`: at most as
/// long as the run of it that began it. What runs beside the client, or after it, is observed until its last run ended.
pub(super) fn waited_until(exits: &[Exit], start: Time, until: Time) -> Time {
    let own = run_at(exits, start).map(|i| &exits[i]);
    let end = own.or(exits.last()).map_or(until, |e| e.end);
    until.min(end).max(start)
}

/// The run of the client that was going on at `at`.
fn run_at(exits: &[Exit], at: Time) -> Option<usize> {
    exits.iter().position(|e| e.start <= at && at <= e.end)
}

/// How long a client waits for the answer to its first SYN before it sends the SYN again (RFC 6298 section 2). Later
/// it waits at most as long as it has waited in all before, and this.
const SYN_AGAIN: Dur = Dur::from_secs(1);

/// How long the client can have waited for a connection that was never opened, observed until `until`. A client that
/// gives up sends nothing, but one that still waits sends its SYN again.
pub(super) fn tried_until(exits: &[Exit], c: &Connection, until: Time) -> Time {
    let again = c.last_try + c.last_try.since(c.start) + SYN_AGAIN;
    waited_until(exits, c.start, until).min(again)
}

/// The client's requests in the order in which they began, with warnings. Data that needs no answer is not a request.
/// Heartbeats count as requests only if there are no others. `exits` are the runs of the client.
pub(super) fn requests(
    conversations: &Conversations,
    exits: &[Exit],
) -> (Vec<Request>, Vec<Warning>) {
    let all: Vec<_> = exchanges(conversations)
        .filter(|(_, _, e)| e.label.waits())
        .collect();
    let beats = all.iter().filter(|a| a.2.label == Label::Heartbeat).count();
    let others = all.len() > beats;
    let attempts = Attempts::of(conversations, exits);
    let mut rows: Vec<Request> = all
        .iter()
        .filter(|a| !others || a.2.label != Label::Heartbeat)
        .map(|&(conversation, index, e)| {
            let mut row = row(conversation, index, e, exits);
            if index == 0
                && let Some(earlier) = attempts.earlier.get(&conversation)
            {
                row.start = (e.start - *earlier).as_secs_f64();
                row.connected = row.start;
            }
            row
        })
        .collect();
    rows.extend(never_opened(&attempts, exits));
    rows.sort_by(|a, b| a.start.total_cmp(&b.start));
    let mut doubts = Vec::new();
    if all.iter().any(|a| a.2.label == Label::Merged) {
        doubts.push(Warning::note(
            Code::MergedRequests,
            "requests that overlapped in a connection are timed as one, from the first byte asked to the last byte answered: packets cannot tell them apart",
        ));
    }
    if others && beats > 0 {
        doubts.push(Warning::note(
            Code::Heartbeats,
            "small periodic exchanges that keep connections alive are not among the requests",
        ));
    }
    doubts.extend(unrequested::unasked(conversations));
    doubts.extend(unrequested::called_back(conversations));
    (rows, doubts)
}

/// Whether a generator fell so far behind its schedule that it did not generate the configured traffic. Such a run
/// must not decide a verdict either.
pub(super) fn behind<'w>(warnings: impl IntoIterator<Item = &'w Warning>) -> bool {
    let mut warnings = warnings.into_iter();
    warnings.any(|w| w.code == Code::TimersLate)
}

/// Whether the emulator's lateness could have changed too much for the run to decide a verdict: too many requests,
/// too many one-way transfers, or too many packets of streams. If packets show none of these, the criterion is one
/// packet in a hundred that is over a millisecond late (ModelNet's bound).
pub(super) fn too_late(conversations: &Conversations, late: &Late, stretch: f64) -> bool {
    let judged = |all: &mut dyn Iterator<Item = &Exchange>| {
        all.fold([0, 0], |[all, changed], e| {
            [
                all + 1,
                changed + u64::from(e.late > e.lasted().scale(CHANGED)),
            ]
        })
    };
    let requests = exchanges(conversations).map(|(_, _, e)| e);
    let requests = judged(&mut requests.filter(|e| e.label.waits()));
    let transfers = conversations.connections.iter().flat_map(|c| &c.exchanges);
    let transfers = judged(&mut transfers.filter(|e| e.label == Label::OneWay));
    let streams = conversations.datagrams.iter().map(|d| d.stream);
    let streams = streams.fold([0, 0], |sum, s| [sum[0] + s[0], sum[1] + s[1]]);
    let kinds = [requests, transfers, streams];
    if kinds.iter().all(|k| k[0] == 0) {
        return late.too_late(stretch);
    }
    kinds
        .iter()
        .any(|&[all, changed]| changed as f64 > LATE * all as f64)
}

fn row(conversation: usize, index: usize, e: &Exchange, exits: &[Exit]) -> Request {
    let seconds = |at: Option<Time>| at.map_or(f64::NAN, Time::as_secs_f64);
    Request {
        client: conversation as u32,
        index: index as u32,
        start: e.start.as_secs_f64(),
        connected: e.start.as_secs_f64(),
        first_byte: seconds(e.first_byte),
        last_byte: seconds(e.last_byte),
        observed_until: match e.outcome {
            crate::Outcome::Answered => e.until,
            _ => waited_until(exits, e.start, e.until),
        }
        .as_secs_f64(),
        bytes: e.bytes[1],
        retransmissions: e.retransmissions,
        outcome: match e.outcome {
            crate::Outcome::Answered => Outcome::Done,
            crate::Outcome::CutOff => Outcome::Unfinished,
            crate::Outcome::Failed => Outcome::Failed,
        },
    }
}

/// A program that is refused at one of a server's addresses tries the next one. If that attempt succeeds and began
/// within this time, the first one is not a failed request.
const NEXT_ADDRESS: Dur = Dur::from_millis(1000);
/// A program that waits for an answer from one address tries the next one beside it within this time: RFC 8305 section
/// 5 recommends 250 ms, curl waits for 200 ms and Go for 300 ms.
const BESIDE: Dur = Dur::from_millis(400);

/// Connections that the client could not open.
pub(super) struct Attempts<'c> {
    /// Those that failed, each with its number.
    failed: Vec<(usize, &'c Connection)>,
    /// The numbers of those instead of which the client used one over the other IP version.
    given_up: BTreeSet<usize>,
    /// How much before a connection the client began to try to connect over the other IP version, by the number of the
    /// connection.
    earlier: BTreeMap<usize, Dur>,
}

impl<'c> Attempts<'c> {
    /// `exits` are the runs of the client.
    pub(super) fn of(conversations: &'c Conversations, exits: &[Exit]) -> Attempts<'c> {
        let all: Vec<&Connection> = connections(conversations).collect();
        let mut attempts = Attempts {
            failed: Vec::new(),
            given_up: BTreeSet::new(),
            earlier: BTreeMap::new(),
        };
        for (number, c) in all.iter().enumerate() {
            if c.connected.is_some() || !c.exchanges.is_empty() {
                continue;
            }
            let Some(instead) = connected_elsewhere(c, &all, exits) else {
                attempts.failed.push((number, c));
                continue;
            };
            let by = all[instead].start.since(c.start);
            let earlier = attempts.earlier.entry(instead).or_default();
            *earlier = by.max(*earlier);
            attempts.given_up.insert(number);
        }
        attempts
    }

    /// Whether the client used a connection over the other IP version instead of the one of this number.
    pub(super) fn gave_up(&self, number: usize) -> bool {
        self.given_up.contains(&number)
    }

    /// When the client began to try to connect: with connection `c` of this number, or before over the other IP version.
    pub(super) fn begun(&self, number: usize, c: &Connection) -> Time {
        let earlier = self.earlier.get(&number);
        c.start - earlier.copied().unwrap_or(Dur::ZERO)
    }
}

/// The connection to the same port over the other IP version that the same run of the client used instead of this one,
/// which it could not open.
fn connected_elsewhere(tried: &Connection, all: &[&Connection], exits: &[Exit]) -> Option<usize> {
    let refused = tried.ending == Ending::ResetByServer;
    let (first, last) = match refused {
        true => (tried.start, tried.until + NEXT_ADDRESS),
        false => (tried.start - BESIDE, tried.start + BESIDE),
    };
    let run = run_at(exits, tried.start);
    let instead = |c: &Connection| {
        let (server, port) = c.server;
        let other = port == tried.server.1 && server.is_ipv4() != tried.server.0.is_ipv4();
        // A client that waits for both takes the first. Then it no longer tries to open the other.
        let taken = |at: Time| at >= tried.start && tried.last_try <= at;
        other && c.connected.is_some_and(taken) && run_at(exits, c.start) == run
    };
    // Connections come in the order in which they began.
    let from = all.partition_point(|c| c.start < first);
    let near = all[from..].iter().take_while(|c| c.start < last);
    let mut numbered = near.enumerate();
    numbered.find_map(|(i, c)| instead(c).then_some(from + i))
}

/// Connections that the client could not open. They count as failed requests if refused, else as unfinished ones.
fn never_opened(attempts: &Attempts<'_>, exits: &[Exit]) -> impl Iterator<Item = Request> {
    let closed = attempts.failed.iter();
    closed.map(|&(number, c)| Request {
        client: number as u32,
        index: 0,
        start: c.start.as_secs_f64(),
        connected: f64::NAN,
        first_byte: f64::NAN,
        last_byte: f64::NAN,
        observed_until: tried_until(exits, c, c.until).as_secs_f64(),
        bytes: 0,
        retransmissions: 0,
        outcome: match c.ending {
            Ending::ResetByServer => Outcome::Failed,
            _ => Outcome::Unfinished,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::place::{CLIENT, SERVER};

    fn connection(version: usize, start: u64, connected: bool) -> Connection {
        let at = Time::from_nanos(start * 1_000_000);
        Connection {
            client: (CLIENT[version], 5000),
            server: (SERVER[version], 80),
            start: at,
            last_try: at,
            connected: connected.then_some(at),
            first_byte: None,
            last_byte: None,
            delivered: None,
            bytes: [0, 0],
            retransmissions: [0, 0],
            ending: if connected {
                Ending::Closed
            } else {
                Ending::ResetByServer
            },
            until: at + Dur::from_millis(10),
            exchanges: Vec::new(),
            unasked: [0; 2],
        }
    }

    #[test]
    fn a_run_whose_generator_was_behind_its_schedule_is_late() {
        let warned = |code| {
            [
                Warning::warning(Code::Strangers, ""),
                Warning::warning(code, ""),
            ]
        };
        assert!(behind(&warned(Code::TimersLate)));
        assert!(!behind(&warned(Code::WindowsNotCapped)));
    }

    /// Every kind of traffic is judged separately: punctual requests do not compensate for late packets of a stream.
    #[test]
    fn a_run_is_late_by_its_requests_its_transfers_or_its_streams() {
        let exchange = |label, late| Exchange {
            start: Time::ZERO,
            first_byte: None,
            last_byte: None,
            until: Time::from_secs_f64(1.0),
            bytes: [1, 0],
            pieces: 9,
            retransmissions: 0,
            late: Dur::from_millis(late),
            outcome: crate::Outcome::CutOff,
            label,
        };
        let judged = |exchanges: Vec<Exchange>, stream: [u64; 2]| {
            let datagrams = crate::Conversation {
                client: CLIENT[0],
                bytes: [0; 2],
                stream,
                quic: false,
                exchanges: Vec::new(),
            };
            let conversations = Conversations {
                connections: vec![Connection {
                    exchanges,
                    ..connection(0, 0, true)
                }],
                datagrams: vec![datagrams],
                ..Conversations::default()
            };
            let far_too_late = Late {
                p99: Dur::from_millis(100),
                ..Late::default()
            };
            [Late::default(), far_too_late].map(|late| too_late(&conversations, &late, 1.0))
        };
        let good = || exchange(Label::Request, 50);
        assert_eq!(judged(vec![], [0, 0]), [false, true]);
        assert_eq!(judged(vec![good()], [0, 0]), [false; 2]);
        assert_eq!(
            judged(vec![exchange(Label::Request, 51)], [0, 0]),
            [true; 2]
        );
        let upload = exchange(Label::OneWay, 51);
        assert_eq!(judged(vec![good(), upload], [0, 0]), [true; 2]);
        // A punctual control connection beside a stream, of which at most 2.5 % of packets may be late.
        assert_eq!(judged(vec![good()], [1000, 25]), [false; 2]);
        assert_eq!(judged(vec![good()], [1000, 26]), [true; 2]);
        assert_eq!(judged(vec![], [1000, 25]), [false; 2]);
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Dur::from_millis(ms)
    }

    /// What is still open at the end of the run was waited for no longer than its client ran.
    #[test]
    fn a_client_waits_no_longer_than_it_runs() {
        let exits: Vec<Exit> = [[0, 2000], [2100, 4000], [50_000, 60_000]]
            .map(|[start, end]| Exit {
                start: at(start),
                end: at(end),
                status: None,
                timed_out: false,
            })
            .into();
        let waited = |start| waited_until(&exits, at(start), at(62_000));
        assert_eq!(waited(500), at(2000));
        assert_eq!(waited(2100), at(4000));
        // Begun by what a run left behind, and by what the last one did.
        assert_eq!(waited(5000), at(60_000));
        assert_eq!(waited(61_000), at(61_000));
        assert_eq!(waited_until(&exits, at(500), at(700)), at(700));
        assert_eq!(waited_until(&[], at(500), at(700)), at(700));
        let exchange = |outcome, last_byte: Option<u64>| Exchange {
            start: at(100),
            first_byte: last_byte.map(at),
            last_byte: last_byte.map(at),
            until: at(62_000),
            bytes: [1, 0],
            pieces: 1,
            retransmissions: 0,
            late: Dur::ZERO,
            outcome,
            label: Label::Request,
        };
        let cut = exchange(crate::Outcome::CutOff, None);
        let conversations = Conversations {
            connections: vec![
                Connection {
                    exchanges: vec![cut],
                    ..connection(0, 0, true)
                },
                // Its SYN was lost.
                Connection {
                    ending: Ending::Open,
                    until: at(62_000),
                    ..connection(0, 2500, false)
                },
            ],
            ..Conversations::default()
        };
        let (rows, _) = requests(&conversations, &exits);
        let until: Vec<f64> = rows.iter().map(|r| r.observed_until).collect();
        // A client that had still waited would have sent its SYN again after a second.
        assert_eq!(until, [2.0, 3.5]);
    }

    #[test]
    fn connections_that_servers_opened_are_told() {
        let told = |back: u64| {
            let [mut own, mut other] = [connection(0, 0, true), connection(1, 0, true)];
            own.bytes = [100, 1000];
            (other.client, other.server) = (own.server, own.client);
            other.bytes = [back, 0];
            let conversations = Conversations {
                connections: vec![own, other],
                ..Conversations::default()
            };
            let (_, doubts) = requests(&conversations, &[]);
            doubts.iter().any(|d| d.code == Code::CalledBack)
        };
        assert!(told(5000) && !told(500));
    }

    #[test]
    fn data_that_came_unasked_is_told() {
        let told = |unasked| {
            let conversations = Conversations {
                connections: vec![Connection {
                    unasked,
                    ..connection(0, 0, true)
                }],
                ..Conversations::default()
            };
            let (_, doubts) = requests(&conversations, &[]);
            let said = |d: &Warning| d.code == Code::UnaskedData;
            let told = doubts.into_iter().find(said)?;
            Some(told.message)
        };
        assert_eq!(told([0, 0]), None);
        let small = told([1, 0]).unwrap();
        assert!(small.contains("once it was small") && !small.contains("more"));
        let both = told([2, 3]).unwrap();
        assert!(both.contains("2 times it was small") && both.contains("3 times it was more"));
    }

    #[test]
    fn a_server_that_is_found_at_its_other_address_has_not_failed() {
        let found = |connections: Vec<Connection>| {
            let conversations = Conversations {
                connections,
                ..Conversations::default()
            };
            never_opened(&Attempts::of(&conversations, &[]), &[])
                .map(|r| r.outcome)
                .collect::<Vec<_>>()
        };
        // No server listens over IPv6, but one does over IPv4.
        assert_eq!(
            found(vec![connection(1, 0, false), connection(0, 11, true)]),
            []
        );
        // No server listens over either version.
        let refused = vec![connection(1, 0, false), connection(0, 11, false)];
        assert_eq!(found(refused), [Outcome::Failed; 2]);
        // A connection that succeeds much later, or before, belongs to another request.
        let later = vec![connection(1, 0, false), connection(0, 5000, true)];
        assert_eq!(found(later), [Outcome::Failed]);
        let before = vec![connection(0, 0, true), connection(1, 100, false)];
        assert_eq!(found(before), [Outcome::Failed]);
        // A later success at the same address does not undo the failure.
        let again = vec![connection(0, 0, false), connection(0, 11, true)];
        assert_eq!(found(again), [Outcome::Failed]);
    }

    #[test]
    fn separate_runs_of_a_client_are_separate_attempts() {
        let tried = Connection {
            ending: Ending::Open,
            ..connection(1, 0, false)
        };
        let conversations = Conversations {
            connections: vec![tried, connection(0, 300, true)],
            ..Conversations::default()
        };
        let gave_up = |runs: &[[u64; 2]]| {
            let exit = |&[start, end]: &[u64; 2]| Exit {
                start: at(start),
                end: at(end),
                status: None,
                timed_out: false,
            };
            let exits: Vec<Exit> = runs.iter().map(exit).collect();
            let attempts = Attempts::of(&conversations, &exits);
            assert_eq!(attempts.gave_up(0), attempts.failed.is_empty());
            attempts.gave_up(0)
        };
        assert!(gave_up(&[[0, 500]]));
        assert!(!gave_up(&[[0, 200], [250, 500]]));
    }

    /// Happy Eyeballs (RFC 8305): a SYN over IPv6 is lost, and the client connects over IPv4 meanwhile.
    #[test]
    fn the_request_of_a_client_that_tries_both_versions_begins_at_its_first_attempt() {
        let rows = |tried: Connection, start: u64| {
            let mut used = connection(0, start, true);
            used.exchanges = vec![Exchange {
                start: at(start),
                first_byte: Some(at(start + 50)),
                last_byte: Some(at(start + 50)),
                until: at(start + 50),
                bytes: [1, 1],
                pieces: 1,
                retransmissions: 0,
                late: Dur::ZERO,
                outcome: crate::Outcome::Answered,
                label: Label::Request,
            }];
            let conversations = Conversations {
                connections: vec![tried, used],
                ..Conversations::default()
            };
            let (rows, _) = requests(&conversations, &[]);
            rows.iter()
                .map(|r| (r.start, r.outcome))
                .collect::<Vec<_>>()
        };
        let lost = || Connection {
            ending: Ending::Open,
            until: at(9000),
            ..connection(1, 1000, false)
        };
        assert_eq!(rows(lost(), 1250), [(1.0, Outcome::Done)]);
        // Its SYN-ACK came when the client had given up.
        let given_up = Connection {
            ending: Ending::ResetByClient,
            ..lost()
        };
        assert_eq!(rows(given_up, 1250), [(1.0, Outcome::Done)]);
        assert_eq!(rows(connection(1, 1000, false), 1011)[0].0, 1.0);
        // A client that goes on trying has not connected elsewhere.
        let goes_on = Connection {
            last_try: at(2000),
            ..lost()
        };
        let both = [(1.0, Outcome::Unfinished), (1.25, Outcome::Done)];
        assert_eq!(rows(goes_on, 1250), both);
        // Nobody waits so long before trying the other version beside the first.
        assert_eq!(rows(lost(), 1500).len(), 2);
    }
}
