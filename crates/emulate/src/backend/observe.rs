//! Converts an emulated run to table rows.

use swell_base::{Code, Dur, Time, Warning};
use swell_experiment::RunSpec;
use swell_experiment::backend::RunError;
use swell_experiment::file::{Measure, Program};
use swell_experiment::kinds::Plays;
use swell_experiment::observe::{LinkTotals, Observations, Outcome, Request};
use swell_experiment::stage;

use super::attempt::{Done, Played};
use super::exit::Exit;
use super::place::is_client;
use super::requests::{self, Attempts, tried_until, waited_until};
use super::settings::Conditions;
use crate::{Connection, Conversations, Ending};
use swell_host::Offload;

pub(super) fn observe(
    spec: &RunSpec,
    foreground: &dyn Plays,
    mut played: Played,
) -> Result<Observations, RunError> {
    // The meters are complete only when the queues are up to date.
    played.world.advance(played.at);
    let length = played.at.since(Time::ZERO);
    let spec = RunSpec {
        duration: length.max(spec.warmup + spec.bins),
        ..spec.clone()
    };
    let at_end = stage::ledgers(&played.world);
    let mut observed = played
        .run_parts
        .observe(&mut played.world, &spec, &at_end)?;
    let conversations = played.conversations;
    observed.warnings.extend(played.conditions.doubts());
    if conversations.unfollowed > 0 {
        observed.warnings.push(Warning::warning(
            Code::UnfollowedConnections,
            format!(
                "{} connections beyond the first million are in no table",
                conversations.unfollowed
            ),
        ));
    }
    observed.warnings.extend(played.doubts);
    observed.measures = played.measures;
    match (foreground.program(), played.done) {
        (Some(program), Done::Exits(exits)) => {
            let kept = !played.terminal;
            programs(&mut observed, program, &exits, &conversations, length, kept);
            if spec.background.is_empty() && spec.beside.is_empty() {
                observed
                    .warnings
                    .extend(own_loss(&observed.links, &conversations));
            }
        }
        (_, Done::Machine(requests, measures, warnings)) => {
            observed.requests = requests;
            observed.measures = measures;
            observed.warnings.extend(warnings);
            stage::completed(&played.world, &spec, &mut observed);
        }
        (None, Done::Exits(_)) => {}
    }
    Ok(observed)
}

fn programs(
    observed: &mut Observations,
    program: &Program,
    exits: &[Exit],
    conversations: &Conversations,
    length: Dur,
    kept: bool,
) {
    let connections = &conversations.connections[..];
    let ran = || {
        let runs = exits.iter().enumerate();
        runs.map(|(i, exit)| run(i, exit, received(connections, exit)))
            .collect()
    };
    observed.requests = match program.measure {
        Measure::Requests => {
            let (rows, warnings) = requests::requests(conversations, exits);
            observed.warnings.extend(warnings);
            rows
        }
        Measure::Connections => opened(conversations, exits, Time::ZERO + length),
        Measure::Runs => ran(),
    };
    if program.measure == Measure::Requests && observed.requests.is_empty() {
        observed.requests = ran();
        observed.warnings.push(Warning::warning(
            Code::NoRequest,
            "no request of the client shows in its packets: its runs are measured instead",
        ));
    }
    if program.measure == Measure::Connections && observed.requests.is_empty() {
        observed.warnings.push(Warning::warning(
            Code::NoConnection,
            "the client opened no TCP connection: measure = \"runs\" measures its runs instead",
        ));
    }
    let failed = |e: &&Exit| e.timed_out || e.status.is_some_and(|s| !s.success());
    let failures = exits.iter().filter(failed).count();
    if failures > 0 {
        let text = match kept {
            true => "runs of the client failed or took too long; its output is kept with the run",
            false => "the client failed or took too long",
        };
        observed
            .warnings
            .push(Warning::warning(Code::ClientFailed, text));
    }
}

/// A run without background in which full queues drop a larger share of a program's datagrams raises a doubt.
const LOSSY: f64 = 0.01;

/// A doubt about a program that sends mostly datagrams that nobody sends again. TCP and QUIC fill a queue until it drops,
/// and active queue management drops as it is meant to.
fn own_loss(links: &[LinkTotals], conversations: &Conversations) -> Option<Warning> {
    let (quic, datagrams): (Vec<_>, Vec<_>) =
        (conversations.datagrams.iter()).partition(|d| d.quic);
    let connections = conversations.connections.iter().map(|c| c.bytes);
    let sent_again = connections.chain(quic.iter().map(|d| d.bytes)).flatten();
    let mostly = datagrams.iter().flat_map(|d| d.bytes).sum::<u64>() > sent_again.sum();
    let lossy = |link: &LinkTotals| {
        let [full, ..] = link.dropped_by;
        full as f64 > LOSSY * link.arrived_packets[0] as f64
    };
    (mostly && links.iter().any(lossy)).then(|| {
        Warning::warning(
            Code::OwnLoss,
            "over 1 % of the program's datagrams were dropped at a full queue without any background: it may fail by itself; a longer queue holds its bursts",
        )
    })
}

/// The client's connections, in the order in which it began to open them, observed until `end`.
fn opened(conversations: &Conversations, exits: &[Exit], end: Time) -> Vec<Request> {
    // A connection without data, such as a probe's, is not a request.
    let asked = |c: &Connection| c.bytes != [0, 0] || c.connected.is_none() || c.is_open();
    let attempts = Attempts::of(conversations, exits);
    let mut opened: Vec<(Time, &Connection)> = requests::connections(conversations)
        .enumerate()
        .filter(|&(number, c)| asked(c) && !attempts.gave_up(number))
        .map(|(number, c)| (attempts.begun(number, c), c))
        .collect();
    opened.sort_by_key(|&(begun, _)| begun);
    let waited = |c: &Connection| match c.connected {
        Some(_) => waited_until(exits, c.start, end),
        None => tried_until(exits, c, c.until),
    };
    let opened = opened.iter().enumerate();
    opened
        .map(|(i, &(begun, c))| connection(i, c, begun, waited(c)))
        .collect()
}

/// The row of a connection that the client began to open at `begun`, and for which it waited until `end` at most.
fn connection(index: usize, c: &Connection, begun: Time, end: Time) -> Request {
    let seconds = |at: Option<Time>| at.map_or(f64::NAN, Time::as_secs_f64);
    // An upload without a reply ends with its last byte.
    let uploaded = c.delivered.filter(|_| c.ending == Ending::Closed);
    let last_seen = c
        .last_byte
        .or(uploaded)
        .or(c.first_byte)
        .or(c.connected)
        .unwrap_or(c.start);
    // The client closed it before it had the whole answer.
    let cut_off = c
        .exchanges
        .last()
        .filter(|e| e.label.waits() && e.label != crate::Label::Heartbeat)
        .is_some_and(|e| e.outcome == crate::Outcome::CutOff);
    let outcome = match c.ending {
        Ending::Closing | Ending::ResetByClient if cut_off => Outcome::Unfinished,
        Ending::Closed | Ending::Closing | Ending::ResetByClient if c.last_byte.is_some() => {
            Outcome::Done
        }
        Ending::Closed if uploaded.is_some() => Outcome::Done,
        Ending::Open | Ending::Closing | Ending::ResetByClient => Outcome::Unfinished,
        Ending::Closed | Ending::ResetByServer => Outcome::Failed,
    };
    Request {
        client: 0,
        index: index as u32,
        start: begun.as_secs_f64(),
        connected: seconds(c.connected),
        first_byte: seconds(c.first_byte),
        last_byte: seconds(c.last_byte.or(uploaded)),
        observed_until: match outcome {
            // The client waited until then, or until it reset or closed the connection.
            Outcome::Unfinished => c.until.min(end).as_secs_f64(),
            _ => last_seen.as_secs_f64(),
        },
        bytes: c.bytes[1],
        retransmissions: c.retransmissions[1],
        outcome,
    }
}

fn run(index: usize, exit: &Exit, bytes: u64) -> Request {
    Request {
        client: 0,
        index: index as u32,
        start: exit.start.as_secs_f64(),
        connected: f64::NAN,
        first_byte: f64::NAN,
        last_byte: exit.end.as_secs_f64(),
        observed_until: exit.end.as_secs_f64(),
        bytes,
        retransmissions: 0,
        outcome: match exit.status {
            Some(status) if status.success() => Outcome::Done,
            Some(_) => Outcome::Failed,
            None if exit.timed_out => Outcome::Failed,
            None => Outcome::Unfinished,
        },
    }
}

/// TCP payload that the client received over connections that were opened during a run of it.
fn received(connections: &[Connection], exit: &Exit) -> u64 {
    let during = connections
        .iter()
        .filter(|c| is_client(c.client.0) && c.start >= exit.start && c.start <= exit.end);
    during.map(|c| c.bytes[1]).sum()
}

impl Conditions {
    /// Warnings about this machine, and about what its kernel did to packets.
    pub fn doubts(&self) -> Vec<Warning> {
        doubts(self)
    }
}

fn doubts(conditions: &Conditions) -> Vec<Warning> {
    let mut doubts = conditions.late.doubts();
    if conditions.too_late {
        doubts.push(Warning::warning(
            Code::EmulatorLate,
            "packets left so late that requests, or packets of streams, may have taken over a twentieth longer for it, or a generator's timers were late: the machine was too busy for this network; run fewer things beside it, or, in runs, stretch time (--stretch-to). Such runs decide nothing",
        ));
    }
    let mut count = |n: u64, code: Code, what: &str| {
        if n > 0 {
            doubts.push(Warning::warning(code, format!("{n} {what}")));
        }
    };
    let c = &conditions.counts;
    count(
        c.lost,
        Code::UnintendedLoss,
        "packets were lost before they entered the network, since the machine was too slow or could not cut them into packets of the wire: no model asked for that",
    );
    count(
        c.refused,
        Code::RefusedPackets,
        "packets had crossed the network and were not taken by the host that they were for",
    );
    count(
        c.groups,
        Code::MulticastLost,
        "datagrams to multicast groups were discarded, since no emulated host is a member of one",
    );
    for (host, losses) in &conditions.losses {
        for loss in losses {
            count(
                loss.count,
                Code::HostLosses,
                &format!(
                    "times the kernel of the host {host} counted {}: {}",
                    loss.counter,
                    meaning(&loss.counter)
                ),
            );
        }
    }
    count(
        conditions.pressure.backlog_drops,
        Code::BacklogDrops,
        "packets were dropped on this machine since a processor's backlog was full (net.core.netdev_max_backlog): no model asked for that",
    );
    doubts.extend(pressure(conditions));
    if c.set > 0 {
        doubts.push(Warning::note(
            Code::SetWhileRunning,
            "`swell set` changed the link while the program ran: rates and delays of the experiment held only before",
        ));
    }
    if c.unroutable > 0 {
        doubts.push(Warning::note(
            Code::UnroutablePackets,
            format!("{} packets were for unknown addresses", c.unroutable),
        ));
    }
    if conditions.offload == Offload::Pass {
        doubts.push(Warning::warning(
            Code::SuperPackets,
            "packets of up to 64 KiB crossed the network whole, as the kernel handed them over, where a wire would have carried 45: queues, losses and spacing are coarser by as much",
        ));
    }
    if conditions.stretch > 1.0 {
        doubts.push(Warning::note(
            Code::StretchedTime,
            format!(
                "time was stretched by {}: the programs' processors seemed as much faster; times are the network's",
                conditions.stretch
            ),
        ));
    }
    doubts
}

/// The meaning of a counter in [`HostLoss`](swell_host::HostLoss).
fn meaning(counter: &str) -> &'static str {
    match counter {
        "Udp.RcvbufErrors" | "Udp6RcvbufErrors" => {
            "datagrams had crossed the network, and the program read too slowly for its buffer. No model asked for these losses"
        }
        "TcpExt.ListenOverflows" | "TcpExt.ListenDrops" => {
            "connections waited for a server that did not accept them in time, and were refused"
        }
        "TcpExt.RcvPruned" | "TcpExt.TCPRcvQDrop" | "TcpExt.TCPBacklogDrop" => {
            "segments had crossed the network, and the program read too slowly for its buffer. No model asked for these losses"
        }
        "Udp.SndbufErrors" | "Udp6SndbufErrors" | "Ip.OutDiscards" | "Ip6OutDiscards" => {
            "packets were lost before they entered the network: no model asked for that"
        }
        "Ip.ReasmFails" | "Ip6ReasmFails" => {
            "datagrams of which a fragment was missing were given up"
        }
        "Udp.InCsumErrors" | "Udp6InCsumErrors" | "Tcp.InCsumErrors" => {
            "packets that came were damaged"
        }
        _ => "packets were lost at the end of the network: no model asked for that",
    }
}

/// Warnings about processor time that other programs took, if it exceeds a hundredth of the run's duration.
fn pressure(conditions: &Conditions) -> Vec<Warning> {
    let told = |share: f64, code: Code, what: &str| {
        (share > 0.01).then(|| {
            Warning::note(
                code,
                format!("for {:.0} % of the time {what}", share * 100.0),
            )
        })
    };
    let wall = conditions.wall.as_secs_f64().max(1e-9);
    let p = &conditions.pressure;
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    [
        told(
            p.stolen.as_secs_f64() / wall / processors,
            Code::StolenTime,
            "the hypervisor gave this machine's processors to others",
        ),
        told(
            p.throttled.as_secs_f64() / wall,
            Code::Throttled,
            "the limit of a control group (cpu.max) stopped the emulator and the programs",
        ),
        told(
            conditions.waited.as_secs_f64() / wall,
            Code::WaitedForProcessor,
            "the emulator could have run and others had its processor",
        ),
        told(
            conditions.gave_way.as_secs_f64() / wall,
            Code::GaveWay,
            "the emulator had more to do than fits beside the programs, and gave its real-time priority up",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A client sends and closes, and the server closes without a reply.
    #[test]
    fn an_upload_without_a_reply_is_done_with_its_last_byte() {
        let at = |ms| Time::ZERO + Dur::from_millis(ms);
        let upload = Connection {
            client: ([198, 18, 0, 1].into(), 5000),
            server: ([198, 19, 0, 1].into(), 80),
            start: at(1000),
            last_try: at(1000),
            connected: Some(at(1040)),
            first_byte: None,
            last_byte: None,
            delivered: Some(at(1300)),
            bytes: [100_000, 0],
            retransmissions: [0; 2],
            ending: Ending::Closed,
            until: at(1400),
            exchanges: Vec::new(),
            unasked: [0; 2],
        };
        let row = connection(0, &upload, at(1000), at(4000));
        assert_eq!(
            (row.outcome, row.last_byte, row.observed_until),
            (Outcome::Done, 1.3, 1.3)
        );
        let nothing = Connection {
            delivered: None,
            bytes: [0; 2],
            ..upload
        };
        assert_eq!(
            connection(0, &nothing, at(1000), at(4000)).outcome,
            Outcome::Failed
        );
    }

    /// Happy Eyeballs (RFC 8305): the first attempt got no answer, and the client connected over the other version. A
    /// third connection was abandoned, a fourth in the middle of an answer, and a fifth in that of a heartbeat.
    #[test]
    fn an_attempt_that_was_given_up_is_in_no_row_and_begins_the_other() {
        use super::super::place::{CLIENT, SERVER};

        let at = |ms| Time::ZERO + Dur::from_millis(ms);
        let lost = Connection {
            client: (CLIENT[1], 5000),
            server: (SERVER[1], 80),
            start: at(1000),
            last_try: at(1000),
            connected: None,
            first_byte: None,
            last_byte: None,
            delivered: None,
            bytes: [0; 2],
            retransmissions: [0; 2],
            ending: Ending::Open,
            until: at(4000),
            exchanges: Vec::new(),
            unasked: [0; 2],
        };
        let used = Connection {
            client: (CLIENT[0], 5000),
            server: (SERVER[0], 80),
            start: at(1250),
            last_try: at(1250),
            connected: Some(at(1300)),
            first_byte: Some(at(1400)),
            last_byte: Some(at(1400)),
            bytes: [9, 9],
            ending: Ending::Closed,
            ..lost.clone()
        };
        let abandoned = Connection {
            start: at(2000),
            connected: Some(at(2050)),
            first_byte: None,
            last_byte: None,
            ending: Ending::ResetByClient,
            until: at(3000),
            ..used.clone()
        };
        let mut in_answer = Connection {
            start: at(2500),
            first_byte: Some(at(2600)),
            last_byte: Some(at(2700)),
            ..abandoned.clone()
        };
        in_answer.exchanges.push(crate::Exchange {
            start: at(2550),
            first_byte: Some(at(2600)),
            last_byte: Some(at(2700)),
            until: at(3000),
            bytes: [9, 9],
            pieces: 1,
            retransmissions: 0,
            late: Dur::ZERO,
            outcome: crate::Outcome::CutOff,
            label: crate::Label::Request,
        });
        // The client closes while a heartbeat is under way.
        let mut kept = in_answer.clone();
        kept.start = at(2600);
        kept.exchanges[0].label = crate::Label::Heartbeat;
        let conversations = Conversations {
            connections: vec![lost, used, abandoned, in_answer, kept],
            ..Conversations::default()
        };
        let rows = opened(&conversations, &[], at(4000));
        let rows: Vec<_> = rows
            .iter()
            .map(|r| (r.index, r.start, r.observed_until, r.outcome))
            .collect();
        let expected = [
            (0, 1.0, 1.4, Outcome::Done),
            (1, 2.0, 3.0, Outcome::Unfinished),
            (2, 2.5, 3.0, Outcome::Unfinished),
            (3, 2.6, 2.7, Outcome::Done),
        ];
        assert_eq!(rows, expected);
    }

    /// Bursts of datagrams that do not fit into the queue, and a TCP connection that fills it.
    #[test]
    fn datagrams_that_are_lost_without_a_background_are_told() {
        let told = |dropped_by: [u64; 3], quic: bool, datagrams: u64| {
            let link = LinkTotals {
                arrived_packets: [1000, 0],
                dropped: [dropped_by.iter().sum(), 0],
                dropped_by,
                ..LinkTotals::default()
            };
            let conversations = Conversations {
                datagrams: vec![crate::Conversation {
                    client: [198, 18, 0, 1].into(),
                    bytes: [8, datagrams],
                    stream: [0; 2],
                    quic,
                    exchanges: Vec::new(),
                }],
                connections: vec![Connection {
                    client: ([198, 18, 0, 1].into(), 5000),
                    server: ([198, 19, 0, 1].into(), 80),
                    start: Time::ZERO,
                    last_try: Time::ZERO,
                    connected: None,
                    first_byte: None,
                    last_byte: None,
                    delivered: None,
                    bytes: [9, 1000],
                    retransmissions: [0; 2],
                    ending: Ending::Open,
                    until: Time::ZERO,
                    exchanges: Vec::new(),
                    unasked: [0; 2],
                }],
                ..Conversations::default()
            };
            own_loss(&[link], &conversations).is_some()
        };
        assert!(told([50, 0, 0], false, 24_000));
        assert!(!told([10, 0, 0], false, 24_000));
        assert!(!told([50, 0, 0], false, 500));
        // Active queue management drops before the queue is full, and QUIC fills it like TCP.
        assert!(!told([0, 50, 0], false, 24_000));
        assert!(!told([50, 0, 0], true, 24_000));
    }

    #[test]
    fn what_the_machine_lacked_is_told() {
        let quiet = Conditions {
            late: crate::Late::default(),
            too_late: false,
            counts: crate::Counts::default(),
            precision: swell_host::Precision::Fair,
            offload: Offload::Segment,
            stretch: 1.0,
            wall: Duration::from_secs(14),
            gave_way: Dur::ZERO,
            waited: Dur::ZERO,
            pressure: swell_host::Pressure::default(),
            losses: Vec::new(),
        };
        let codes = |conditions: &Conditions| -> Vec<String> {
            conditions
                .doubts()
                .into_iter()
                .map(|d| d.code.to_string())
                .collect()
        };
        assert!(codes(&quiet).is_empty());
        let busy = Conditions {
            too_late: true,
            waited: Dur::from_millis(1820),
            ..quiet
        };
        assert_eq!(codes(&busy), ["emulator-late", "waited-for-processor"]);
    }
}
