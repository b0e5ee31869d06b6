//! Impossible changes of the network.

use swell_base::{Direction, Dur, Rate};

use super::qdisc;
use crate::file::findings::{Findings, LONGEST, loss};
use crate::file::{Change, File, LinkKeys};

/// Minimum interval of a schedule of changes.
const OFTEN: Dur = Dur::from_millis(1);

pub(super) fn changes(file: &File, found: &mut Findings) {
    let named = (file.links.iter().enumerate()).map(|(n, l)| (format!("links[{n}]"), &l.keys));
    for (place, keys) in [("network".to_owned(), &file.network.link)]
        .into_iter()
        .chain(named)
    {
        for (i, change) in keys.change.iter().enumerate() {
            let key = |name: &str| format!("{place}.change[{i}].{name}");
            check(change, key, found);
            room(change, keys, key, found);
        }
    }
}

/// Rejects a new queue without room for a full packet, in the first direction where it has none.
fn room(change: &Change, keys: &LinkKeys, key: impl Fn(&str) -> String, found: &mut Findings) {
    let before = found.count();
    for (direction, link) in Direction::BOTH.into_iter().zip(keys.directions()) {
        let unknown = change.deliveries.is_some() || link.deliveries.is_some();
        let rate = change.rate.or((!unknown).then_some(link.rate));
        let rate = rate.filter(|rate| *rate != Rate::default());
        let given = change.queue.is_some() || change.qdisc.is_some();
        if given && change.direction.has(direction) && found.count() == before {
            let limit = change.queue.unwrap_or(link.queue);
            let discipline = change.qdisc.as_ref().map_or(&link.qdisc, |spec| &spec.0);
            let name = if change.queue.is_some() {
                "queue"
            } else {
                "qdisc"
            };
            qdisc::room(key(name), discipline, limit, rate, found);
        }
    }
}

fn check(change: &Change, key: impl Fn(&str) -> String, found: &mut Findings) {
    let nothing = change.rate.is_none()
        && change.deliveries.is_none()
        && change.delay.is_none()
        && change.loss.is_none()
        && change.queue.is_none()
        && change.qdisc.is_none()
        && change.outage.is_none();
    if nothing {
        found.add(
            key("at"),
            "nothing changes",
            "give one of rate, deliveries, delay, loss, queue, qdisc, outage",
        );
    }
    if change.every.is_some_and(|every| every < OFTEN) {
        found.add(
            key("every"),
            "a change that often is no schedule",
            "write 1ms or more",
        );
    }
    if change.rate == Some(Rate::default()) {
        found.add(
            key("rate"),
            "a link of rate 0 carries nothing",
            "write outage = \"2s\" for a link that is down for two seconds",
        );
    }
    if change.rate.is_some() && change.deliveries.is_some() {
        found.add(
            key("deliveries"),
            "`rate` and `deliveries` both say how much gets through",
            "give one of the two",
        );
    }
    if let Some(p) = change.loss {
        loss(|name| format!("{}.{name}", key("loss")), p, found);
    }
    if let Some(limit) = change.queue {
        found.limit(key("queue"), limit);
    }
    if let Some(spec) = &change.qdisc {
        spec.0.check(&key("qdisc"), found);
    }
    match change.outage {
        Some(Dur::ZERO) => found.add(key("outage"), "an outage of no length", ""),
        Some(length) if length > LONGEST => found.add(
            key("outage"),
            format!("an outage of {length} outlasts every run"),
            "write a day (86400s) or less",
        ),
        Some(length) if change.every.is_some_and(|every| every <= length) => found.add(
            key("outage"),
            format!("an outage of {length} has not ended when the next begins"),
            "write less than `every`",
        ),
        Some(_) => {}
        None if change.outage_packets.is_some() => found.add(
            key("outage_packets"),
            "there is no outage",
            "write for example outage = \"2s\"",
        ),
        None => {}
    }
}
