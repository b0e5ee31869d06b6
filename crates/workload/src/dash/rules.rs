//! Rules for the bitrate of the next segment.

use swell_base::{Dur, Rate};

/// How a player chooses bitrates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// By buffer level: BBA-0 (Huang, Johari, McKeown, Trunnell & Watson, SIGCOMM 2014).
    Bba,
    /// By buffer level: BOLA (Spiteri, Urgaonkar & Sitaraman, INFOCOM 2016).
    Bola,
    /// By throughput of past segments: the harmonic mean of FESTIVE (Jiang, Sekar & Zhang, CoNEXT 2012).
    Throughput,
}

/// Inputs of a choice.
#[derive(Clone, Copy, Debug)]
pub struct Known<'k> {
    /// Available bitrates, in ascending order.
    pub ladder: &'k [Rate],
    /// Media time per segment.
    pub segment: Dur,
    /// Largest amount of media in the buffer.
    pub buffer: Dur,
    /// Current amount of media in the buffer.
    pub level: Dur,
    /// Bitrate of the previous segment, as an index into the ladder.
    pub before: Option<usize>,
    /// Throughput of each segment so far, the latest last, bits per second.
    pub speeds: &'k [f64],
}

impl Rule {
    /// The bitrate of the next segment, as an index into the ladder.
    pub fn choose(self, known: &Known<'_>) -> usize {
        match self {
            Rule::Bba => bba(known),
            Rule::Bola => bola(known),
            Rule::Throughput => throughput(known),
        }
    }
}

/// The paper reserves 90 s of a buffer of 240 s. The map from level to rate rises over the next 126 s, up to nine
/// tenths of the buffer (section 4). Other buffers are divided in the same proportions.
const RESERVOIR: f64 = 90.0 / 240.0;
const CUSHION: f64 = 126.0 / 240.0;

/// BBA-0, algorithm 1 of the paper. It chooses the lowest rate within the reservoir and the highest beyond the
/// cushion. In between, a line maps the level to a rate, and the choice changes when the line reaches the next rate,
/// up or down.
fn bba(known: &Known<'_>) -> usize {
    let rate = |i: usize| known.ladder.get(i).map_or(0.0, |r| r.bps() as f64);
    let top = known.ladder.len().saturating_sub(1);
    let buffer = known.buffer.as_secs_f64();
    let reservoir = RESERVOIR * buffer;
    // When a rate is chosen, the buffer has space for at least one segment. In a small buffer the highest rate must
    // be reachable at that level.
    let reach = buffer - known.segment.as_secs_f64() - reservoir;
    let cushion = f64::min(CUSHION * buffer, reach).max(0.0);
    let level = known.level.as_secs_f64();
    if level <= reservoir {
        return 0;
    }
    if level >= reservoir + cushion - 1e-9 {
        return top;
    }
    let line = rate(0) + (rate(top) - rate(0)) * (level - reservoir) / cushion;
    let before = known.before.unwrap_or(0);
    let (above, below) = ((before + 1).min(top), before.saturating_sub(1));
    if line >= rate(above) && above > before {
        (0..=top).rev().find(|&i| rate(i) <= line).unwrap_or(0)
    } else if line <= rate(below) && below < before {
        (0..=top).find(|&i| rate(i) >= line).unwrap_or(top)
    } else {
        before
    }
}

/// The paper's weight of uninterrupted playback relative to quality (section V).
const SMOOTHNESS: f64 = 5.0;

/// BOLA-BASIC, section III: the rate with the largest (V (v + g) - Q) / S. Q is the number of segments in the buffer,
/// S the size of a segment, and v = ln(S / S of the lowest rate). V is chosen so that nothing is fetched when the
/// buffer has no space for a segment.
fn bola(known: &Known<'_>) -> usize {
    let lowest = known.ladder.first().map_or(1.0, |r| r.bps() as f64);
    let utility = |rate: f64| libm::log(rate / lowest);
    let highest = known.ladder.last().map_or(lowest, |r| r.bps() as f64);
    let segment = known.segment.as_secs_f64();
    let room = known.buffer.as_secs_f64() / segment - 1.0;
    let weight = room / (utility(highest) + SMOOTHNESS);
    let level = known.level.as_secs_f64() / segment;
    let mut best = (0, f64::NEG_INFINITY);
    for (i, rate) in known.ladder.iter().enumerate() {
        let rate = rate.bps() as f64;
        let score = (weight * (utility(rate) + SMOOTHNESS) - level) / rate;
        if score > best.1 {
            best = (i, score);
        }
    }
    best.0
}

/// Number of segments averaged, and the share of the mean that is used.
const SPEEDS: usize = 20;
const SHARE: f64 = 0.85;

/// The highest rate that is at most 0.85 of the harmonic mean throughput of the last 20 segments; the lowest rate
/// before the first segment.
fn throughput(known: &Known<'_>) -> usize {
    let recent = &known.speeds[known.speeds.len().saturating_sub(SPEEDS)..];
    let inverse: f64 = recent.iter().map(|speed| 1.0 / speed).sum();
    let mean = if recent.is_empty() {
        0.0
    } else {
        recent.len() as f64 / inverse
    };
    let fits = |rate: &Rate| rate.bps() as f64 <= SHARE * mean;
    known.ladder.iter().rposition(fits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(kbit: &[u64]) -> Vec<Rate> {
        kbit.iter().map(|k| Rate::from_bps(k * 1000)).collect()
    }

    /// The map for the paper's buffer and Netflix's ladder: 235 + 5565 (B - 90) / 126 kbit/s, computed by hand.
    #[test]
    fn bba_follows_the_line_with_hysteresis() {
        let ladder = rates(&[235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800]);
        let at = |level: u64, before: usize| {
            Rule::Bba.choose(&Known {
                ladder: &ladder,
                segment: Dur::from_secs(4),
                buffer: Dur::from_secs(240),
                level: Dur::from_secs(level),
                before: Some(before),
                speeds: &[],
            })
        };
        assert_eq!((at(0, 9), at(90, 9)), (0, 0));
        assert_eq!((at(216, 0), at(240, 3)), (9, 9));
        // 3017.5 kbit/s. From 3000, neither 4300 nor 2350 is reached. From below, the result is 3000; from above, 4300.
        assert_eq!((at(153, 7), at(153, 4), at(153, 9)), (7, 7, 8));
        // 4298.3 and 4342.5 kbit/s: the next rate is chosen when the line reaches it.
        assert_eq!((at(182, 7), at(183, 7)), (7, 8));
        // 2355 and 2310.8 kbit/s: the rate stays until the line falls to the next lower one.
        assert_eq!((at(138, 7), at(137, 7)), (7, 6));
    }

    /// Sizes 1, 2 and 4 with V = 1: scores are equal at Q = 5 - ln 2 and at Q = 5, computed by hand.
    #[test]
    fn bola_changes_where_the_scores_cross() {
        let ladder = rates(&[1000, 2000, 4000]);
        let segments = 1.0 + SMOOTHNESS + 2.0 * std::f64::consts::LN_2;
        let at = |level: f64| {
            Rule::Bola.choose(&Known {
                ladder: &ladder,
                segment: Dur::from_secs(1),
                buffer: Dur::from_secs_f64(segments),
                level: Dur::from_secs_f64(level),
                before: None,
                speeds: &[],
            })
        };
        assert_eq!((at(0.0), at(4.30), at(4.31)), (0, 0, 1));
        assert_eq!((at(4.99), at(5.01), at(6.3)), (1, 2, 2));
    }

    #[test]
    fn the_harmonic_mean_leaves_a_margin() {
        let ladder = rates(&[235, 1750, 3000, 4300]);
        let at = |speeds: &[f64]| {
            Rule::Throughput.choose(&Known {
                ladder: &ladder,
                segment: Dur::from_secs(4),
                buffer: Dur::from_secs(30),
                level: Dur::ZERO,
                before: None,
                speeds,
            })
        };
        assert_eq!(at(&[]), 0);
        // 3.53 Mbit/s is the smallest throughput of which 0.85 is 3 Mbit/s.
        assert_eq!((at(&[3.52e6]), at(&[3.54e6])), (1, 2));
        // 2 and 6: the harmonic mean is 3, the arithmetic mean 4. Segments before the last twenty do not count.
        assert_eq!(at(&[2e6, 6e6]), 1);
        let mut speeds = vec![1e3];
        speeds.extend([6e6; 20]);
        assert_eq!(at(&speeds), 3);
    }
}
