//! What one process at each end can do: agents on two hosts of this machine, driven by this process.

use std::time::{Duration, Instant};

use swell_base::{Dur, Rate};
use swell_generate::agent::{Controller, ModelPart, Order, Standing, TrafficPart, Trust};
use swell_host::Rights;
use swell_study::router::Capacity;
use swell_traffic::flowlevel::{FlowModel, Histogram, Interval};

use crate::fail::Fail;
use crate::generate::local::Local;

/// Sessions at a time, after the load was doubled.
const SESSIONS: u64 = 5_000;
/// Bytes of each of their files: what is measured is how many there are, not how much they carry.
const FILE: u64 = 3_000;
/// A file that does not end.
const ENDLESS: u64 = 1 << 50;
/// Agents are asked how they stand every half second; what is read then is younger.
const FRESH: Duration = Duration::from_millis(1_200);

pub(super) fn measure(rights: &Rights, model: &FlowModel, quick: bool) -> Result<Capacity, Fail> {
    let span = Duration::from_secs(if quick { 2 } else { 5 });
    let mut capacity = Capacity {
        bulk: Some(bulk(rights, span)?),
        sessions: SESSIONS,
        ..Capacity::default()
    };
    sessions(rights, model, span, &mut capacity)?;
    Ok(capacity)
}

fn order(local: &Local, traffic: TrafficPart) -> Order {
    Order {
        clients: vec![local.client()],
        servers: vec![local.server()],
        token: local.token(),
        trust: Trust::Loopback,
        traffic,
        lease: Dur::from_secs(5),
        threads: 1,
        flows: false,
        keep: false,
        dscp: Vec::new(),
        congestion: Vec::new(),
    }
}

/// Payload of one stream, between two looks.
fn bulk(rights: &Rights, span: Duration) -> Result<Rate, Fail> {
    let local = Local::new(rights)?;
    let traffic = TrafficPart::Closed {
        sessions: 1,
        up: 100,
        down: ENDLESS,
    };
    let mut controller = Controller::new(&order(&local, traffic)).map_err(Fail::failed)?;
    controller.start().map_err(Fail::failed)?;
    let begun = Instant::now();
    std::thread::sleep(span);
    controller.stop();
    let took = begun.elapsed();
    // What was counted up to the stop is told with it.
    let (clients, _) = controller.standing();
    let received: u64 = statistics(&clients).map(|s| s.counts.received_bytes).sum();
    controller.end();
    Ok(Rate::from_bps_f64(
        received as f64 * 8.0 / took.as_secs_f64(),
    ))
}

fn sessions(
    rights: &Rights,
    model: &FlowModel,
    span: Duration,
    capacity: &mut Capacity,
) -> Result<(), Fail> {
    let local = Local::new(rights)?;
    let idle = local.memory().unwrap_or_default();
    capacity.idle = idle.map(|bytes| bytes as f64 / 1e6);
    let part = ModelPart {
        model: many(model).to_json(),
        seed: 1,
        load: 0.5,
        compression: 1.0,
        first: 0,
        cycle: true,
    };
    let order = order(&local, TrafficPart::Model(part));
    let mut controller = Controller::new(&order).map_err(Fail::failed)?;
    controller.start().map_err(Fail::failed)?;
    std::thread::sleep(FRESH);
    let before = active_in(&controller);
    controller.set_load(1.0).map_err(Fail::failed)?;
    std::thread::sleep(span.max(FRESH));
    let after = active_in(&controller);
    capacity.reloaded = Some([before, after]);
    capacity.active = after;
    capacity.memory = local.memory();
    controller.stop();
    let (clients, servers) = controller.standing();
    for s in statistics(&clients) {
        capacity.done += s.counts.done;
        capacity.failed += s.counts.failed;
        capacity.late = capacity.late.max(s.late.p99_us / 1e6);
    }
    let all = || statistics(&clients).chain(statistics(&servers));
    capacity.stopped = all().count() == 2 && all().all(|s| s.run.state == "stopped");
    controller.end();
    Ok(())
}

fn active_in(controller: &Controller) -> u64 {
    let (clients, _) = controller.standing();
    statistics(&clients).map(|s| s.sessions).sum()
}

fn statistics(
    standing: &[Standing],
) -> impl Iterator<Item = &swell_generate::agent::StatisticsView> + Clone {
    standing.iter().filter_map(|s| s.statistics.as_ref())
}

/// Sessions with the model's gaps, small files, and hosts enough for all.
fn many(model: &FlowModel) -> FlowModel {
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
        seen: SESSIONS,
        sessions: SESSIONS,
    }];
    model.span = [
        0,
        i64::try_from(model.interval.as_nanos()).unwrap_or(i64::MAX),
    ];
    model
}
