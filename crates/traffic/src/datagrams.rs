//! UDP flows.

use swell_base::Dur;

/// A UDP flow. It is open loop: packets keep their times and their order, whatever the network does.
///
/// Short flows list every packet. Long ones are two chains of [`Run`]s, the client's and the server's, in
/// order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Datagrams {
    /// Packets: gap since the previous one (either direction), true if from the client, UDP payload bytes.
    /// Empty if there are runs.
    pub packets: Vec<(Dur, bool, u32)>,
    /// Runs from the client and from the server.
    pub runs: [Vec<Run>; 2],
}

/// Consecutive datagrams of one direction, evenly spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Time from the last datagram of the previous run (or from the flow's start) to its first.
    pub pause: Dur,
    /// Time from its first datagram to its last.
    pub span: Dur,
    /// Number of datagrams, at least one.
    pub packets: u32,
    /// UDP payload bytes of all of them.
    pub bytes: u64,
    /// UDP payload of the smallest and of the largest.
    pub sizes: [u32; 2],
}

impl Run {
    /// Time of its datagram number `i` after its first. The last one is due after `span`.
    pub fn due(&self, i: u32) -> Dur {
        let gaps = u128::from(self.packets.saturating_sub(1).max(1));
        let at = u128::from(self.span.as_nanos()) * u128::from(i.min(self.packets)) / gaps;
        Dur::from_nanos(u64::try_from(at).unwrap_or(u64::MAX))
    }

    /// UDP payload of its datagram number `i`: the smallest or the largest size, evenly mixed, so that
    /// they sum to `bytes`. At most one has a size in between.
    pub fn size(&self, i: u32) -> u32 {
        let [least, most] = self.sizes.map(u64::from);
        let n = u64::from(self.packets.max(1));
        let (large, rest) = self.mix();
        let i = u64::from(i);
        let is_large = (i + 1) * large / n > i * large / n;
        let bytes = if is_large {
            most
        } else if i == 0 {
            least + rest
        } else {
            least
        };
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Number of datagrams of the largest size. If the first is none of them, the bytes that it has beyond
    /// the smallest size.
    fn mix(&self) -> (u64, u64) {
        let [least, most] = self.sizes.map(u64::from);
        let n = u64::from(self.packets.max(1));
        let more = self.bytes.saturating_sub(n * least);
        match most.saturating_sub(least) {
            0 => (0, more),
            step => ((more / step).min(n), more % step),
        }
    }

    /// UDP payload bytes of its first `n` datagrams ([`Run::size`]).
    pub(crate) fn bytes_of_first(&self, n: u32) -> u64 {
        let [least, most] = self.sizes.map(u64::from);
        let all = u64::from(self.packets.max(1));
        let n = u64::from(n.min(self.packets));
        let (large, rest) = self.mix();
        let rest = if n > 0 && large < all { rest } else { 0 };
        (n * least + n * large / all * most.saturating_sub(least)).saturating_add(rest)
    }

    /// Number of its datagrams that are due by `at` after its first ([`Run::due`]).
    pub(crate) fn due_by(&self, at: Dur) -> u32 {
        let gaps = u128::from(self.packets.saturating_sub(1).max(1));
        match u128::from(self.span.as_nanos()) {
            0 => self.packets,
            span => {
                let n = ((u128::from(at.as_nanos()) + 1) * gaps).div_ceil(span);
                u32::try_from(n).map_or(self.packets, |n| n.min(self.packets))
            }
        }
    }
}

/// Position in a flow ([`Datagrams::step`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// By direction: the next run, and the next datagram in it. For listed packets only `packet[0]`
    /// counts.
    run: [u32; 2],
    packet: [u32; 2],
    /// By direction, when the previous run ended; and when the last datagram of either direction was due.
    ended: [Dur; 2],
    last: Dur,
}

impl Datagrams {
    /// Whether every packet is listed individually.
    pub fn is_whole(&self) -> bool {
        self.runs.iter().all(Vec::is_empty)
    }

    /// Number of packets from the client and from the server.
    pub fn count(&self) -> [u64; 2] {
        let listed = self.packets.iter().filter(|p| p.1).count() as u64;
        let listed = [listed, self.packets.len() as u64 - listed];
        [0, 1].map(|end| {
            let runs = self.runs[end].iter().map(|r| u64::from(r.packets));
            runs.fold(listed[end], u64::saturating_add)
        })
    }

    /// UDP payload bytes from the client and from the server.
    pub fn bytes(&self) -> [u64; 2] {
        [0, 1].map(|end| {
            let listed = self.packets.iter().filter(|p| p.1 == (end == 0));
            let listed = listed.map(|p| u64::from(p.2)).sum::<u64>();
            let runs = self.runs[end].iter().map(|r| r.bytes);
            runs.fold(listed, u64::saturating_add)
        })
    }

    /// The next datagram in time order, with the client's first at equal times. Returns the gap since the
    /// previous one, true if from the client, UDP payload bytes. `None` after the last.
    pub fn step(&self, cursor: &mut Cursor) -> Option<(Dur, bool, u32)> {
        let whole = self.is_whole();
        let packet = |i| self.packets.get(i).copied().filter(|_| whole);
        step(packet, |end, i| self.runs[end].get(i).copied(), cursor)
    }

    /// All datagrams, as [`Datagrams::step`] returns them.
    pub fn iter(&self) -> impl Iterator<Item = (Dur, bool, u32)> + '_ {
        let mut cursor = Cursor::default();
        std::iter::from_fn(move || self.step(&mut cursor))
    }

    /// Time from its start to its last packet.
    pub fn lasts(&self) -> Dur {
        let listed = self.packets.iter().map(|p| p.0).sum::<Dur>();
        let chain = |runs: &[Run]| runs.iter().map(|r| r.pause + r.span).sum::<Dur>();
        listed.max(chain(&self.runs[0])).max(chain(&self.runs[1]))
    }

    /// Time from its start until so many datagrams of the client and of the server have gone. A run takes
    /// one step, however many datagrams it names.
    pub fn gone(&self, units: [u32; 2]) -> Dur {
        let mut last = Dur::ZERO;
        let (mut at, mut listed) = (Dur::ZERO, units);
        for &(gap, client, _) in &self.packets {
            at += gap;
            let own = &mut listed[usize::from(!client)];
            if *own > 0 {
                *own -= 1;
                last = at;
            }
        }
        for (runs, mut left) in self.runs.iter().zip(units) {
            let mut ended = Dur::ZERO;
            for run in runs {
                if left == 0 {
                    break;
                }
                let n = left.min(run.packets);
                last = last.max(ended + run.pause + run.due(n.saturating_sub(1)));
                ended += run.pause + run.span;
                left -= n;
            }
        }
        last
    }
}

/// [`Datagrams::step`] of a flow that lists these packets and runs, by index.
pub(crate) fn step(
    packet: impl FnOnce(usize) -> Option<(Dur, bool, u32)>,
    run: impl Fn(usize, usize) -> Option<Run>,
    cursor: &mut Cursor,
) -> Option<(Dur, bool, u32)> {
    if let Some(listed) = packet(cursor.packet[0] as usize) {
        cursor.packet[0] += 1;
        return Some(listed);
    }
    let next = [0, 1].map(|end| run(end, cursor.run[end] as usize));
    let due = [0, 1].map(|end| {
        let next = next[end]?;
        Some(cursor.ended[end] + next.pause + next.due(cursor.packet[end]))
    });
    let (end, at) = match due {
        [Some(a), Some(b)] if b < a => (1, b),
        [Some(a), _] => (0, a),
        [None, b] => (1, b?),
    };
    let here = next[end]?;
    let bytes = here.size(cursor.packet[end]);
    cursor.packet[end] += 1;
    if cursor.packet[end] >= here.packets {
        cursor.run[end] += 1;
        cursor.packet[end] = 0;
        cursor.ended[end] = cursor.ended[end] + here.pause + here.span;
    }
    let pause = at - cursor.last;
    cursor.last = cursor.last.max(at);
    Some((pause, end == 0, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A run's datagrams sum to its bytes, lie within its sizes, and span its time.
        #[test]
        fn a_run_is_what_it_says(
            n in 1..2_000u32,
            least in 0..1_500u32,
            more in 0..1_500u32,
            share in 0.0..=1.0f64,
            span in 0..1u64 << 50,
        ) {
            let sizes = [least, least + more];
            // Any sum that such datagrams can have. A run of one datagram has one size.
            let room = u64::from(n) * u64::from(more);
            let bytes = u64::from(n) * u64::from(least) + (room as f64 * share) as u64;
            let run = Run {
                pause: Dur::ZERO,
                span: Dur::from_nanos(if n == 1 { 0 } else { span }),
                packets: n,
                bytes,
                sizes,
            };
            let all: Vec<u32> = (0..n).map(|i| run.size(i)).collect();
            prop_assert_eq!(all.iter().map(|&b| u64::from(b)).sum::<u64>(), bytes);
            prop_assert!(all.iter().all(|b| (sizes[0]..=sizes[1]).contains(b)));
            prop_assert_eq!(run.due(0), Dur::ZERO);
            prop_assert_eq!(run.due(n - 1), run.span);
            // Its parts, computed at once, are those counted one by one.
            let part = (f64::from(n) * share) as u32;
            let counted = all[..part as usize].iter().map(|&b| u64::from(b)).sum::<u64>();
            prop_assert_eq!(run.bytes_of_first(part), counted);
            for at in [Dur::ZERO, run.due(part), run.due(part) + Dur::from_nanos(1), run.span] {
                let due = (0..n).take_while(|&i| run.due(i) <= at).count();
                prop_assert_eq!(run.due_by(at) as usize, due);
            }
        }
    }

    #[test]
    fn what_a_flow_holds() {
        let run = |pause, span, packets, bytes| Run {
            pause: Dur::from_millis(pause),
            span: Dur::from_millis(span),
            packets,
            bytes,
            sizes: [10, 1_000],
        };
        let d = Datagrams {
            packets: vec![],
            runs: [
                vec![run(0, 0, 1, 10), run(500, 100, 3, 30)],
                vec![run(40, 200, 50, 40_000)],
            ],
        };
        assert_eq!(d.count(), [4, 50]);
        assert_eq!(d.bytes(), [40, 40_000]);
        assert_eq!(d.lasts(), Dur::from_millis(600));
        let all: Vec<_> = d.iter().collect();
        assert_eq!(all.len(), 54);
        assert_eq!(all.iter().map(|p| p.0).sum::<Dur>(), d.lasts());
        assert_eq!(
            all[..2],
            [(Dur::ZERO, true, 10), (Dur::from_millis(40), false, 900)]
        );
        assert_eq!(all.iter().map(|p| u64::from(p.2)).sum::<u64>(), 40_040);
        let ups: Vec<_> = all.iter().filter(|p| p.1).map(|p| p.2).collect();
        assert_eq!(ups, [10; 4]);
        // Progress after each datagram.
        let (mut at, mut passed) = (Dur::ZERO, [0; 2]);
        assert_eq!(d.gone(passed), at);
        for (gap, client, _) in all {
            at += gap;
            passed[usize::from(!client)] += 1;
            assert_eq!(d.gone(passed), at);
        }
    }
}
