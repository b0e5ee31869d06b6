//! One UDP flow: its packets, or evenly spread blocks of them.

use swell_base::Dur;
use swell_traffic::Datagrams;

use crate::passed::Passed;

/// Packets per block.
const BLOCK: usize = 32;
/// Blocks held; twice as many are gathered before every other one goes.
const BLOCKS: usize = 16;

/// A UDP flow being tracked.
///
/// Short flows are kept whole. Of long ones every 2^n-th block of 32 consecutive packets is kept, n
/// growing with the flow so that at most 512 packets stay: a systematic sample, evenly spread over
/// the flow, whatever its length.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Gap in nanoseconds, from the client, payload bytes.
    packets: Vec<(u64, bool, u32)>,
    total: u64,
    /// Every `stride`-th block is kept.
    stride: u64,
    pub(crate) start: u64,
    pub(crate) last: u64,
    /// Packets of the client and of the server.
    count: [u64; 2],
    /// What had passed when the user's next group began, if something passed since.
    pub(crate) overtaken: Option<Passed>,
}

impl Flow {
    pub(crate) fn new(start: u64) -> Flow {
        Flow {
            packets: Vec::new(),
            total: 0,
            stride: 1,
            start,
            last: start,
            count: [0; 2],
            overtaken: None,
        }
    }

    /// What has passed so far.
    pub(crate) fn progress(&self) -> Passed {
        Passed {
            packets: self.count,
            ..Passed::default()
        }
    }

    pub(crate) fn push(&mut self, at: u64, from_client: bool, payload: u32) {
        let gap = at.saturating_sub(self.last);
        self.last = at;
        self.count[usize::from(!from_client)] += 1;
        let block = self.total / BLOCK as u64;
        self.total += 1;
        if !block.is_multiple_of(self.stride) {
            return;
        }
        if self.packets.len() == 2 * BLOCK * BLOCKS {
            self.stride *= 2;
            let kept = self.packets.chunks(BLOCK).step_by(2);
            self.packets = kept.flatten().copied().collect();
            if !block.is_multiple_of(self.stride) {
                return;
            }
        }
        self.packets.push((gap, from_client, payload));
    }

    pub(crate) fn finish(mut self) -> Datagrams {
        let full = self.packets.len() as u64 == self.total;
        let limit = BLOCK * BLOCKS;
        if !full || self.packets.len() > limit {
            // A block begun last would weigh as much as a whole one.
            let whole = self.packets.len() / BLOCK * BLOCK;
            self.packets.truncate(whole.max(BLOCK));
            if self.packets.len() > limit {
                let kept = self.packets.chunks(BLOCK).step_by(2);
                self.packets = kept.flatten().copied().collect();
            }
            self.stretch();
        }
        let sampled = self.packets.len() as u64 != self.total;
        Datagrams {
            total_packets: self.total,
            block: if sampled { BLOCK } else { self.packets.len() } as u32,
            packets: self
                .packets
                .into_iter()
                .map(|(gap, client, bytes)| (Dur::from_nanos(gap), client, bytes))
                .collect(),
        }
    }

    /// Makes the kept packets last their share of the flow's duration: what is missing goes into
    /// the gaps in front of the blocks, what is too much is taken out of every gap.
    fn stretch(&mut self) {
        let share = (self.last - self.start) as f64 * self.packets.len() as f64 / self.total as f64;
        let sum: u64 = self.packets.iter().map(|p| p.0).sum();
        let blocks = self.packets.len().div_ceil(BLOCK);
        if (sum as f64) < share {
            let more = ((share - sum as f64) / blocks as f64) as u64;
            for p in self.packets.iter_mut().step_by(BLOCK) {
                p.0 += more;
            }
        } else if sum > 0 {
            for p in &mut self.packets {
                p.0 = (p.0 as f64 * share / sum as f64) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(n: u64, gap: impl Fn(u64) -> u64) -> Datagrams {
        let mut at = 1_000;
        let mut f = Flow::new(at);
        for i in 0..n {
            at += if i == 0 { 0 } else { gap(i) };
            f.push(at, i % 3 == 0, 100 + (i % 50) as u32);
        }
        f.finish()
    }

    #[test]
    fn short_flows_are_kept_whole() {
        let d = flow(500, |i| i * 1_000);
        assert_eq!((d.total_packets, d.packets.len(), d.block), (500, 500, 500));
        assert_eq!(d.packets[0], (Dur::ZERO, true, 100));
        assert_eq!(d.packets[7], (Dur::from_micros(7), false, 107));
    }

    #[test]
    fn long_flows_keep_spread_blocks_and_their_rate() {
        for n in [600, 1_024, 1_025, 5_000, 100_000, 1_000_000] {
            // The second half sends at half the rate.
            let d = flow(n, |i| if i < n / 2 { 1_000_000 } else { 2_000_000 });
            assert_eq!(d.total_packets, n);
            assert_eq!(d.block, 32);
            assert!(
                (256..=512).contains(&d.packets.len()),
                "{n}: {}",
                d.packets.len()
            );
            let lasts = d.packets.iter().map(|p| p.0).sum::<Dur>().as_secs_f64() * d.scale();
            let truth = n as f64 * 1.5e-3;
            assert!(
                (lasts / truth - 1.0).abs() < 0.01,
                "{n}: {lasts} for {truth}"
            );
            let up = d.packets.iter().filter(|p| p.1).count() as f64 / d.packets.len() as f64;
            assert!((up - 1.0 / 3.0).abs() < 0.03, "{n}: {up}");
        }
    }
}
