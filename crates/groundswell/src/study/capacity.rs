//! Measures the capacity of one process at each end: agents on two hosts of this machine, driven by this process.

use std::path::Path;
use std::time::{Duration, Instant};

use swell_base::{Code, Dur};
use swell_generate::agent::{
    Controller, ModelPart, Order, Standing, StatisticsView, TrafficPart, Trust,
};
use swell_host::Rights;
use swell_study::file::bench::AgentsBench;
use swell_traffic::flowlevel::{FlowModel, Histogram, Interval};

use crate::Error;
use crate::generate::Local;

/// Size of each file in bytes: the test measures the number of sessions, not the rate.
const FILE: u64 = 3_000;
/// Size of a file that never ends.
const ENDLESS: u64 = 1 << 50;
/// Longer than two polls of the agents, which happen every half second: the state read then is newer.
const FRESH: Duration = Duration::from_millis(1_200);

/// A controller of which nobody asks anything for a minute lets its leases expire.
const LOOK: Duration = Duration::from_millis(500);

/// Numbers of a client's and a server's process, driven by a third, by name. Those that cannot be read are missing.
type Capacity = Vec<(&'static str, f64)>;

/// Measures the goodput of one stream (`bulk`, bit/s), and the sessions of a model.
pub(super) fn measure(
    hosts: (&Rights, &Path),
    model: &FlowModel,
    bench: &AgentsBench,
    seed: u64,
) -> Result<Capacity, Error> {
    let span = Duration::from_nanos(bench.duration.as_nanos());
    let mut capacity = vec![("bulk", bulk(hosts, span)?)];
    capacity.extend(sessions(hosts, &many(model, bench.sessions), seed, span)?);
    Ok(capacity)
}

fn order(local: &Local, traffic: TrafficPart) -> Order {
    Order {
        clients: vec![local.client()],
        servers: vec![local.server()],
        token: local.token(),
        trust: Trust::Loopback,
        rendezvous: None,
        traffic,
        lease: Dur::from_secs(5),
        threads: 1,
        flows: false,
        keep: false,
        dscp: Vec::new(),
        congestion: Vec::new(),
    }
}

/// Goodput of one stream between two polls.
fn bulk((rights, program): (&Rights, &Path), span: Duration) -> Result<f64, Error> {
    let local = Local::new(rights, program)?;
    let traffic = TrafficPart::Closed {
        sessions: 1,
        up: 100,
        down: ENDLESS,
    };
    let mut controller = Controller::new(&order(&local, traffic)).map_err(Error::failed)?;
    controller.start().map_err(Error::failed)?;
    let begun = Instant::now();
    wait(span, || drop(controller.standing()));
    controller.stop();
    let took = begun.elapsed();
    // The final counts arrive with the answer to the stop.
    let (clients, servers) = controller.standing();
    both_stopped(&clients, &servers)?;
    let received: u64 = statistics(&clients).map(|s| s.counts.received_bytes).sum();
    controller.end();
    Ok(received as f64 * 8.0 / took.as_secs_f64())
}

/// Doubles the load of sessions at run time: how many there were (`reloaded_from`, `reloaded_to`; `active` in the end),
/// their transfers (`done`, `failed`; `late`, the 99th percentile in seconds), most resident memory in bytes before and
/// with traffic, and what of it are pages of the program file (`program_client`, `program_server`), and whether both processes stopped when told to.
fn sessions(
    (rights, program): (&Rights, &Path),
    model: &FlowModel,
    seed: u64,
    span: Duration,
) -> Result<Capacity, Error> {
    let local = Local::new(rights, program)?;
    let idle = local.memory();
    let part = ModelPart {
        model: model.to_json(),
        seed,
        load: 0.5,
        compression: 1.0,
        first: 0,
        cycle: true,
    };
    let order = order(&local, TrafficPart::Model(part));
    let mut controller = Controller::new(&order).map_err(Error::failed)?;
    controller.start().map_err(Error::failed)?;
    wait(FRESH, || drop(controller.standing()));
    let before = active_in(&controller);
    let missed = controller.set_load(1.0).map_err(Error::failed)?;
    if !missed.is_empty() {
        let who = missed.join(", ");
        return Err(Error::failed(format!(
            "{who} did not take the load in time"
        )));
    }
    wait(span.max(FRESH), || drop(controller.standing()));
    let after = active_in(&controller);
    let (used, pages) = (local.memory(), local.program());
    controller.stop();
    let (clients, servers) = controller.standing();
    both_stopped(&clients, &servers)?;
    controller.end();
    let sum = |of: fn(&StatisticsView) -> u64| statistics(&clients).map(of).sum::<u64>() as f64;
    let late = statistics(&clients).map(|s| s.late.p99_us / 1e6);
    let mut capacity = vec![
        ("reloaded_from", before as f64),
        ("reloaded_to", after as f64),
        ("active", after as f64),
        ("done", sum(|s| s.counts.done)),
        ("failed", sum(|s| s.counts.failed)),
        ("late", late.fold(0.0, f64::max)),
        ("stopped", 1.0),
    ];
    for (names, memory) in [
        (["idle_client", "idle_server"], idle),
        (["memory_client", "memory_server"], used),
        (["program_client", "program_server"], pages),
    ] {
        let both = names.into_iter().zip(memory.into_iter().flatten());
        capacity.extend(both.map(|(name, bytes)| (name, bytes as f64)));
    }
    Ok(capacity)
}

/// Sleeps, and calls `look` again and again meanwhile.
fn wait(span: Duration, mut look: impl FnMut()) {
    let begun = Instant::now();
    while let Some(left) = span.checked_sub(begun.elapsed()).filter(|l| !l.is_zero()) {
        std::thread::sleep(left.min(LOOK));
        look();
    }
}

/// Fails unless both agents played until they were told to stop: what was measured otherwise is no capacity.
fn both_stopped(clients: &[Standing], servers: &[Standing]) -> Result<(), Error> {
    for standing in clients.iter().chain(servers) {
        let warnings = standing.statistics.iter().flat_map(|s| &s.warnings);
        if warnings.into_iter().any(|w| w.code == Code::ThreadPanicked) {
            return Err(Error::failed(format!(
                "a thread of {} panicked",
                standing.agent
            )));
        }
        let state = standing.statistics.as_ref().map(|s| s.run.state.as_str());
        if state != Some("stopped") {
            return Err(Error::failed(format!(
                "the agent {} did not play until the end of the measurement: its run is {}",
                standing.agent,
                state.unwrap_or("unknown")
            )));
        }
    }
    Ok(())
}

fn active_in(controller: &Controller) -> u64 {
    let (clients, _) = controller.standing();
    statistics(&clients).map(|s| s.sessions).sum()
}

fn statistics(standing: &[Standing]) -> impl Iterator<Item = &StatisticsView> {
    standing.iter().filter_map(|s| s.statistics.as_ref())
}

/// The model with its gaps, small files, and enough hosts for all sessions.
fn many(model: &FlowModel, sessions: u64) -> FlowModel {
    let mut model = model.clone();
    let mut files = Histogram::default();
    files.add(FILE);
    for sizes in [&mut model.tcp.up, &mut model.tcp.down] {
        sizes.complete = files.clone();
        sizes.censored = Histogram::default();
    }
    model.tcp.intervals = vec![Interval {
        connections: 1,
        bytes: 1,
        seen: sessions,
        sessions,
    }];
    model.span = [
        0,
        i64::try_from(model.interval.as_nanos()).unwrap_or(i64::MAX),
    ];
    model
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::doubts::tests::agent_in;

    #[test]
    fn whoever_waits_for_long_looks_meanwhile() {
        let begun = Instant::now();
        let mut looks = Vec::new();
        wait(LOOK * 5 / 2, || looks.push(begun.elapsed()));
        // Three on a machine that keeps time; a busy one sleeps longer.
        assert!((1..=3).contains(&looks.len()), "{looks:?}");
        assert!(looks.last().unwrap() >= &(LOOK * 5 / 2));
    }

    #[test]
    fn an_agent_that_did_not_play_to_the_end_spoils_the_measurement() {
        let agent = |state: &str| agent_in("a", state, serde_json::json!({}));
        let result = |client: &str, server: &str| both_stopped(&[agent(client)], &[agent(server)]);
        assert!(result("stopped", "stopped").is_ok());
        for (client, server) in [
            ("expired", "expired"),
            ("stopped", "expired"),
            ("playing", "stopped"),
        ] {
            assert!(result(client, server).is_err(), "{client} {server}");
        }
        let mut panicked = agent("stopped");
        let statistics = panicked.statistics.as_mut().unwrap();
        statistics.warnings[0].code = Code::ThreadPanicked;
        assert!(both_stopped(&[panicked], &[agent("stopped")]).is_err());
    }
}
