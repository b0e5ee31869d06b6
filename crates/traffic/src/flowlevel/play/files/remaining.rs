//! Files of an interval that a share still has to send.

use swell_base::{Stream, derived};

use super::super::super::law::permuted;
use super::super::share::Share;

/// A file to be sent.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct File {
    /// Its quantile in the distribution of sizes.
    pub(in super::super) quantile: f64,
    /// Its rank among the rates of files of its size, 0..1; `None` if it has not been drawn.
    pub(in super::super) rank: Option<f64>,
}

/// A share's files of an interval, as quantiles of their distribution.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Remaining {
    /// Large files of previous intervals; the next one is last.
    late: Vec<File>,
    /// Position in the interval, 0..1, and file; the next one is last.
    large: Vec<(f64, File)>,
    small: Small,
    /// Approximate number of the share's files in the interval.
    files: f64,
}

impl Remaining {
    /// `large` files in order of position, `small` ones, and the large ones `left` of the previous
    /// interval. Small files left over are dropped, because they would only load another interval. In the
    /// long run there are as many of them as were drawn in excess in other intervals.
    pub(super) fn new(large: Vec<(f64, File)>, small: Small, left: Remaining) -> Remaining {
        let mut late = left.late;
        late.extend(left.large.iter().map(|l| l.1));
        Remaining {
            late,
            files: large.len() as f64 + small.count as f64 * small.allotment.part(),
            large,
            small,
        }
    }

    /// The file to send at `place` of the interval. A large file is sent before its position only if so
    /// few transfers remain that it would otherwise not be sent at all.
    pub(in super::super) fn draw(&mut self, place: f64, stream: &mut Stream) -> File {
        let due = |l: &mut (f64, File)| l.0 <= place;
        let small = |quantile| File {
            quantile,
            rank: None,
        };
        let file = self.late.pop();
        let file = file.or_else(|| self.large.pop_if(due).map(|l| l.1));
        let file = file.or_else(|| self.small.draw(stream).map(small));
        let few = self.large.len() as f64 >= self.files * (1.0 - place);
        let file = file.or_else(|| self.large.pop_if(|_| few).map(|l| l.1));
        file.unwrap_or_else(|| small(self.small.any(stream)))
    }

    /// Keeps only the files for the last `part` of the interval.
    pub(in super::super) fn keep(&mut self, part: f64) {
        self.large.retain(|l| l.0 >= 1.0 - part);
        self.small.skip(1.0 - part);
    }
}

/// The small files of an interval: one from each part of their distribution below the border, in random
/// order. Only those of the share are returned. There may be many millions, so there is no list of them.
#[derive(Clone, Debug)]
pub(super) struct Small {
    pub(super) allotment: Allotment,
    /// Number of the first small file, and how many there are.
    pub(super) first: u64,
    pub(super) count: u64,
    /// Upper bound of their quantiles.
    pub(super) border: f64,
    /// See [`tilted`].
    pub(super) tilt: f64,
    /// Position in the random order.
    pub(super) next: u64,
}

impl Default for Small {
    fn default() -> Small {
        Small {
            allotment: Allotment::new(0, 0, Share::ALL),
            first: 0,
            count: 0,
            border: 1.0,
            tilt: 0.0,
            next: 0,
        }
    }
}

impl Small {
    fn draw(&mut self, stream: &mut Stream) -> Option<f64> {
        while self.next < self.count {
            let file = permuted(self.next, self.count, self.allotment.seed);
            self.next += 1;
            if self.allotment.is_mine(self.first + file) {
                let u = (file as f64 + stream.uniform()) / self.count as f64;
                return Some(self.border * tilted(u, self.tilt));
            }
        }
        None
    }

    /// One more, beyond the planned ones.
    fn any(&self, stream: &mut Stream) -> f64 {
        self.border * tilted(stream.uniform(), self.tilt)
    }

    /// Skips a `part` of them.
    fn skip(&mut self, part: f64) {
        self.next = (self.count as f64 * part + 0.5) as u64;
    }
}

/// Decides which files of an interval belong to a share: as many to each as it has sessions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allotment {
    seed: u64,
    sessions: u64,
    share: Share,
}

impl Allotment {
    pub(super) fn new(seed: u64, sessions: u64, share: Share) -> Allotment {
        Allotment {
            seed,
            sessions: sessions.max(1),
            share,
        }
    }

    pub(super) fn is_mine(&self, file: u64) -> bool {
        let of = u64::from(self.share.of);
        if of <= 1 {
            return true;
        }
        let turn = derived(self.seed, file / self.sessions) % self.sessions;
        (file % self.sessions + turn) % self.sessions % of == u64::from(self.share.index)
    }

    /// The share's part of all files.
    fn part(&self) -> f64 {
        self.share.part(self.sessions) as f64 / self.sessions as f64
    }
}

/// Transforms the uniform `u` in 0..1 to the density `1 + tilt (2 u - 1)`, by its inverse distribution;
/// `tilt` is in -1..1. The densities of tilts whose mean is zero average to the uniform one, unlike those
/// of power laws.
pub(super) fn tilted(u: f64, tilt: f64) -> f64 {
    let b = 1.0 - tilt;
    let root = (b * b + 4.0 * tilt * u).max(0.0).sqrt();
    // At tilt 1 both are zero for u = 0.
    if b + root > 0.0 {
        (2.0 * u / (b + root)).min(1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tilts_have_the_mean_of_their_density_and_cancel() {
        let n = 100_000;
        let u = |i: u32| (f64::from(i) + 0.5) / f64::from(n);
        for tilt in [-1.0, -0.4, 0.0, 1e-12, 0.4, 1.0] {
            let mean = (0..n).map(|i| tilted(u(i), tilt)).sum::<f64>() / f64::from(n);
            // The integral of u (1 + t (2 u - 1)) is 1/2 + t/6.
            assert!((mean - 0.5 - tilt / 6.0).abs() < 1e-5, "{tilt}: {mean}");
        }
        for x in [0.1, 0.37, 0.9] {
            let below = |tilt: f64| (0..n).filter(|&i| tilted(u(i), tilt) <= x).count() as f64;
            let both = (below(0.8) + below(-0.8)) / f64::from(2 * n);
            assert!((both - x).abs() < 1e-4, "{both} {x}");
        }
    }
}
