//! Queues without room for a packet.

use swell_base::{Bytes, Dur, QueueLimit, Rate};

use crate::file::findings::Findings;
use crate::file::qdisc::Qdisc;

/// Size of a full packet on an Ethernet.
const FULL: Bytes = Bytes(1500);

/// Rejects a limit with the key `at` below one full packet, where `qdisc` also counts packets that find the link idle:
/// it would drop each of them. `rate` is that of the link, if it is known.
pub(super) fn room(
    at: String,
    qdisc: &Qdisc,
    limit: QueueLimit,
    rate: Option<Rate>,
    found: &mut Findings,
) {
    let bytes = match limit {
        QueueLimit::Bytes(bytes) => Some(bytes),
        QueueLimit::Time(span) => rate.map(|rate| rate.carried_in(span)),
        // A limit in BDP is never below a full packet.
        QueueLimit::Packets(_) | QueueLimit::Bdp(_) => None,
    };
    if let Some(bytes) = bytes
        && qdisc.sees_all()
        && bytes < FULL
        // An empty queue has a complaint of its own.
        && limit != QueueLimit::Bytes(Bytes(0))
        && limit != QueueLimit::Time(Dur::ZERO)
    {
        let name = qdisc.label();
        found.add(
            at,
            format!(
                "a queue of {limit} holds {bytes}, and {name} queues packets on an idle link, too: each of {FULL} would be dropped"
            ),
            "write 1pkt or 1500B at least",
        );
    }
}
