//! Pure ACKs.

use swell_base::Dur;

use crate::Connection;
use crate::timeline::{ACK_DELAY, Timeline, ack_every, full, quick_acks};

/// ACKs of one end, spread evenly over an interval since the connection's start.
pub(super) struct Acks {
    pub end: usize,
    pub from: Dur,
    pub to: Dur,
    pub count: f64,
}

/// An end that receives data.
struct Hearer {
    /// Number of segments that it still acknowledges individually and at once.
    quick: f64,
    /// Bytes of full segments that it acknowledges together after that.
    most: f64,
    /// Bytes not acknowledged yet, and since when.
    held: f64,
    since: Dur,
}

impl Hearer {
    /// Sends the delayed ACK by timer if it is due before `until`.
    fn expire(&mut self, end: usize, until: Dur, acks: &mut Vec<Acks>) {
        let due = self.since + Dur::from_secs_f64(ACK_DELAY);
        if self.held > 0.0 && until > due {
            self.held = 0.0;
            acks.push(Acks {
                end,
                from: due,
                to: due,
                count: 1.0,
            });
        }
    }
}

/// As receivers send them (RFC 9293 section 3.8.6.3). The first segments are acknowledged at once. Later,
/// an ACK is sent for the end's usual number of full segments, or by timer. Data and a FIN carry the ACK
/// if they are in time.
pub(super) fn of(c: &Connection, course: &Timeline) -> Vec<Acks> {
    let mut ends = [0, 1].map(|end| Hearer {
        quick: quick_acks(c, end),
        most: ack_every(c, end) * full(c, 1 - end) as f64,
        held: 0.0,
        since: Dur::ZERO,
    });
    let mut acks = Vec::with_capacity(course.spans.len());
    let mut order: Vec<_> = course.spans.iter().collect();
    order.sort_by_key(|s| (s.from, s.to));
    for s in order {
        // The sender's own data carry its pending ACK.
        ends[s.end].expire(s.end, s.from, &mut acks);
        ends[s.end].held = 0.0;
        let end = 1 - s.end;
        let hearer = &mut ends[end];
        let first = s.to.min(s.from + course.rtt / 2);
        hearer.expire(end, first, &mut acks);
        let segments = s.bytes.div_ceil(full(c, s.end)) as f64;
        let quick = segments.min(hearer.quick);
        hearer.quick -= quick;
        let mut count = quick;
        let rest = segments - quick;
        if rest > 0.0 && course.gaps[s.end] > ACK_DELAY {
            count += rest;
        } else if rest > 0.0 {
            let bytes = s.bytes as f64 * rest / segments + hearer.held;
            let answers = (bytes / hearer.most).floor();
            count += answers;
            let held = bytes - answers * hearer.most;
            if hearer.held == 0.0 || answers > 0.0 {
                hearer.since = s.to;
            }
            hearer.held = held;
        }
        if count > 0.0 {
            acks.push(Acks {
                end,
                from: s.from,
                to: s.to,
                count,
            });
        }
    }
    for (end, hearer) in ends.iter_mut().enumerate() {
        hearer.expire(end, course.end, &mut acks);
    }
    acks
}
