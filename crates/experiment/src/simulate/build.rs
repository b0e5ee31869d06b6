//! Builds the configuration of links and recorders from a fully specified run.

use std::sync::Arc;

use swell_base::{Code, Direction, Dur, Time, Warning};
use swell_path::{Capacity, Change, LinkConfig, NewQueue, Outage};
use swell_tcp::Config;

use crate::backend::RunSpec;
use crate::file::{self, Queue};
use crate::kinds::{Playing, Role, significant};
use crate::packets::Source;
use crate::plan::deliveries::counting_rate;

/// The links with their changes.
pub(super) fn links(spec: &RunSpec) -> Vec<swell_world::Duplex> {
    let links = spec.links.iter().map(|duplex| swell_world::Duplex {
        name: duplex.name.to_string(),
        directions: Direction::BOTH.map(|d| link(&duplex.directions[d], &duplex.changes[d], spec)),
    });
    links.collect()
}

/// One direction of a link with its changes.
pub(super) fn direction(spec: &RunSpec, queue: Queue) -> LinkConfig {
    let changes = &spec.links[queue.link].changes[queue.direction];
    link(spec.link(queue), changes, spec)
}

fn link(link: &file::Link, changes: &[file::Change], spec: &RunSpec) -> LinkConfig {
    let from_trace = |deliveries: &file::Deliveries| {
        let trace = Arc::clone(spec.deliveries.get(&deliveries.file)?);
        let phase = deliveries.phase.unwrap_or_default();
        Some(Capacity::Deliveries { trace, phase })
    };
    let at_first = link.deliveries.as_ref().and_then(from_trace);
    let at_first = at_first.map(|capacity| Change {
        capacity: Some(capacity),
        ..Change::default()
    });
    let later = changes.iter().map(|change| Change {
        at: Time::ZERO + change.at,
        every: change.every,
        capacity: match (&change.deliveries, change.rate) {
            (Some(trace), _) => from_trace(&trace.0),
            (None, rate) => rate.map(Capacity::Rate),
        },
        delay: change.delay,
        loss: change.loss,
        queue: change
            .queue
            .zip(change.qdisc.as_ref())
            .map(|(limit, qdisc)| {
                let rate = counting_rate(change, link, &spec.deliveries);
                NewQueue {
                    discipline: qdisc.0.discipline(rate),
                    limit,
                    rate: Some(rate),
                }
            }),
        outage: change.outage.map(|length| Outage {
            length,
            lossy: change.outage_packets == Some(file::OutagePackets::Lost),
        }),
    });
    LinkConfig {
        rate: Some(link.rate),
        delay: link.delay,
        discipline: link.qdisc.discipline(link.rate),
        queue: link.queue,
        overhead: u16::try_from(link.overhead.0).unwrap_or(u16::MAX),
        loss: link.loss,
        changes: at_first.into_iter().chain(later).collect(),
    }
}

/// What a packet recorder must know about a part that uses this TCP configuration.
pub(super) fn source(role: Role, part: &Playing, tcp: &Arc<Config>) -> Source {
    Source {
        tcp: Arc::clone(tcp),
        classes: part.ports(),
        // The ports of HTTP/3, of iperf (version 2) and of a web server.
        port: match role {
            _ if tcp.quic => 443,
            Role::Background => 5001,
            Role::Foreground => 80,
        },
    }
}

/// Doubts about the description of the run.
pub(super) fn doubts(spec: &RunSpec) -> Vec<Warning> {
    let mut doubts = network_doubts(spec);
    for role in [Role::Background, Role::Foreground] {
        for (setting, part) in spec.parts(role) {
            doubts.extend(part.doubts(&setting));
        }
    }
    doubts
}

fn network_doubts(spec: &RunSpec) -> Vec<Warning> {
    let mut doubts = Vec::new();
    let begins = |change: &file::Change| {
        let named = change.deliveries.as_ref();
        named.map(|d| (d.0.file.clone(), change.at))
    };
    let later = spec.links.iter().flat_map(|l| l.changes.iter().flatten());
    let mut late: Vec<Dur> = (later.clone().map(|c| c.at))
        .filter(|&at| at >= spec.duration)
        .collect();
    late.sort_unstable();
    if let Some(at) = late.first() {
        doubts.push(Warning::warning(
            Code::ChangeAfterEnd,
            format!(
                "the network is to change at {at}; the run of {} s is over by then",
                significant(spec.duration.as_secs_f64())
            ),
        ));
    }
    let at_first = spec.links.iter().flat_map(|l| &l.directions);
    let at_first = at_first.filter_map(|l| l.deliveries.as_ref());
    let mut traces: Vec<(String, Dur)> = (at_first.map(|d| (d.file.clone(), Dur::ZERO)))
        .chain(later.filter_map(begins))
        .collect();
    traces.sort();
    traces.dedup_by(|a, b| a.0 == b.0);
    for (file, from) in traces {
        let period = spec.deliveries.get(&file).map(|t| t.period());
        if let Some(period) = period
            && spec.duration.saturating_sub(from) > period
        {
            let name = std::path::Path::new(&file).file_name().unwrap_or_default();
            doubts.push(Warning::note(
                Code::DeliveriesRepeat,
                format!(
                    "a run is longer than the {} s of the delivery trace `{}`: it begins again",
                    significant(period.as_secs_f64()),
                    name.to_string_lossy()
                ),
            ));
        }
    }
    doubts
}
