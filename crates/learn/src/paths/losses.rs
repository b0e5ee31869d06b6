//! Which losses a replay does not bring about by itself.
//!
//! Losses at random come at any RTT, and at any load. Those of a full queue come when the RTT is long, and while the line
//! behind the queue is busy. So losses are counted among packets that waited for little, and while the line was not
//! busy. How many of them were to be expected there tells the share of the losses at random. The tapped link loses
//! packets of all hosts, so where a host's losses are few, those of its side tell.
//!
//! Where a line is hardly ever less than full, there are no such packets. Senders that wait for ACKs fill a line only as
//! far as its queue loses what is too much, whatever is lost elsewhere. So at this rate a replay has as many losses
//! without any others, and with others it has too many. All are the queue's then, except those of a host that loses far
//! more than the others.

use swell_base::{Bytes, Dur, Rate};

use super::capacity::{FULL, SOUND_PAIRS, capacity};
use super::line::Line;
use crate::hosts::{Measured, Reservoir, Sample};
use crate::queue::Queue;
use crate::together::BUSY_PACKETS;

/// Minimum length of a queue that is always full, packets.
const FULL_QUEUE: u64 = 16;
/// Minimum number of losses for their RTTs to tell a cause, and of RTTs to compare them with.
const LOSSES: usize = 5;
/// Number of losses to be expected among some of the packets for their absence to tell.
const EXPECTED: f64 = 5.0;
/// Standard deviations by which a number of losses may be off by chance.
const CHANCE: f64 = 2.2;
/// Share of the packets that a line must have carried while it was not full for their losses to tell a cause.
const IDLE: f64 = 0.1;
/// Part of the expected number of losses that is about as many.
const ABOUT: f64 = 0.75;
/// A host that loses more packets by this factor than the others on a full line has losses of its own: short transfers
/// and those of shorter RTTs lose more than others in the same queue.
const FAR_MORE: f64 = 2.0;
/// Least share of lost packets that is worth a warning.
const FEW: f64 = 0.002;
/// Packets that waited for little: at most these parts of what the 90th percentile did.
const WAITED: [f64; 3] = [0.25, 0.5, 0.75];

/// What lies between the tap and the hosts of a side.
#[derive(Debug)]
pub(super) struct Beyond<'t> {
    pub(super) queue: Queue,
    /// Lines that limit the hosts together, from them and to them.
    pub(super) lines: [Option<Line<'t>>; 2],
    /// Lines on either side of the tap that are full all the time, in these directions.
    pub(super) full: [Option<Line<'t>>; 2],
    /// By direction: what the losses of all hosts tell.
    all: [Tests; 2],
    /// By direction: all packets and losses of a line that is hardly ever less than full, where nothing tells.
    always: [Option<Always>; 2],
}

/// The packets of hosts on a line that is hardly ever less than full, and how many of them were lost.
#[derive(Clone, Copy, Debug, Default)]
struct Always {
    packets: f64,
    lost: f64,
    /// Sum of the squares of what was lost at once.
    squares: f64,
}

impl Always {
    fn of(m: &Measured, way: usize) -> Always {
        let [packets, lost] = [m.sent, m.received][way].map(f64::from);
        let at_once = self::lost(m, way).map(accidents).unwrap_or_default();
        let sum = |of: &dyn Fn(&Accident) -> f64| at_once.iter().map(of).sum::<f64>();
        let mean = sum(&|a| a.lost * a.lost) / sum(&|a| a.lost).max(1.0);
        Always {
            packets,
            lost,
            squares: lost * mean.max(1.0),
        }
    }

    /// The share of a host's losses that are not the line's: what it loses beyond the others.
    fn beyond(&self, own: &Always) -> f64 {
        let others = (self.packets - own.packets).max(0.0);
        let Some(times) = (others > 0.0).then(|| own.packets / others) else {
            return 0.0;
        };
        let expected = times * (self.lost - own.lost).max(0.0);
        let variance = own.squares + times * times * (self.squares - own.squares).max(0.0);
        match own.lost > FAR_MORE * expected + CHANCE * variance.sqrt() {
            true => (own.lost - expected) / own.lost,
            false => 0.0,
        }
    }
}

/// Losses on a full line of which the trace does not tell the cause, for the warnings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Untold {
    pub(crate) rate: Rate,
    /// Whether the rate was given.
    pub(crate) given: bool,
    /// Their share of the packets.
    pub(crate) lost: f64,
}

impl<'t> Beyond<'t> {
    pub(super) fn new(
        queue: Queue,
        lines: [Option<Line<'t>>; 2],
        hosts: &[&Measured],
    ) -> Beyond<'t> {
        let all = [0, 1].map(|way| {
            let mut all = Tests::default();
            for m in hosts {
                let line = lines[way].as_ref().filter(|line| line.filled);
                if line.is_some_and(|line| line.shared) || own(m, way).is_some() {
                    all.add(&Tests::of(m, way, line));
                }
            }
            all
        });
        let always = [0, 1].map(|way| {
            let line = lines[way].as_ref()?;
            always(line, way, hosts).filter(|_| !all[way].by_load())
        });
        Beyond {
            queue,
            lines,
            full: [None; 2],
            all,
            always,
        }
    }

    /// Lines that are full all the time, by direction: from these hosts and to them, or to those of the other side and from
    /// them.
    pub(super) fn full(&self, other: &Beyond<'t>) -> [Option<Line<'t>>; 2] {
        let always = |line: Option<Line<'t>>| line.filter(|line| line.always);
        [0, 1].map(|way| always(self.lines[way]).or(always(other.lines[1 - way])))
    }

    /// The losses whose cause is not told, from these hosts and to them.
    pub(super) fn untold(&self) -> [Option<Untold>; 2] {
        [0, 1].map(|way| {
            let (always, line) = (self.always[way]?, self.lines[way]?);
            let lost = always.lost / always.packets;
            (lost >= FEW).then_some(Untold {
                rate: line.rate,
                given: line.given,
                lost,
            })
        })
    }

    /// Whether hosts wait in the queue of a line that they share, and too few do to tell how long.
    pub(super) fn waits(&self) -> bool {
        let full = |line: &Line<'_>| line.shared && line.filled;
        self.queue.mean() == Dur::ZERO && self.lines.iter().flatten().any(full)
    }

    /// Nothing known.
    pub(super) fn nothing() -> Beyond<'static> {
        Beyond {
            queue: Queue::default(),
            lines: [None; 2],
            full: [None; 2],
            all: Default::default(),
            always: [None; 2],
        }
    }
}

/// All packets of the hosts on a line, if it was hardly ever less than full while they were sent.
fn always(line: &Line<'_>, way: usize, hosts: &[&Measured]) -> Option<Always> {
    let (mut all, mut idle) = (Always::default(), 0.0);
    for m in hosts.iter().filter(|m| loses(line, own(m, way))) {
        let of = Always::of(m, way);
        let Some(times) = times(m, way).filter(|_| !m.held_back()[way]) else {
            continue;
        };
        all.packets += of.packets;
        all.lost += of.lost;
        all.squares += of.squares;
        let shares = BUSY_PACKETS.map(|packets| {
            let while_idle = |k: &&(u32, u32)| !line.busy(packets, k.1);
            times.kept.iter().filter(while_idle).count() as f64 / times.kept.len().max(1) as f64
        });
        idle += of.packets * shares[0].max(shares[1]);
    }
    (all.lost > 0.0 && idle < IDLE * all.packets).then_some(all)
}

/// Whether a line loses packets of a host with this capacity: the line of another host, which is faster than that of
/// this one, loses nothing of its.
fn loses(line: &Line<'_>, own: Option<Rate>) -> bool {
    line.filled && (line.shared || own.is_some_and(|own| line.is(own)))
}

/// Losses among some of the packets.
#[derive(Clone, Copy, Debug, Default)]
struct Test {
    lost: f64,
    /// As many as there would be if losses came at random, and the variance of that and of the share of the packets. What
    /// is lost at once counts as one accident.
    expected: f64,
    variance: f64,
}

impl Test {
    /// `some`: whether a sample, an RTT and its time, is of these packets.
    fn of(times: &Reservoir, lost: &[Accident], some: impl Fn(u32, u32) -> bool) -> Test {
        let count = times.kept.iter().filter(|k| some(k.0, k.1)).count() as f64;
        let share = count / times.kept.len().max(1) as f64;
        let sum = |of: &dyn Fn(&Accident) -> f64| lost.iter().map(of).sum::<f64>();
        let expected = share * sum(&|a| a.lost);
        Test {
            lost: sum(&|a| if some(a.rtt, a.at) { a.lost } else { 0.0 }),
            expected,
            variance: share * sum(&|a| a.lost * a.lost) + expected * expected / count.max(1.0),
        }
    }

    /// The share of losses that are at random, if there are enough to tell. Where the others may be missing by chance,
    /// all are.
    fn share(&self) -> Option<f64> {
        let fewer = self.lost <= self.expected - CHANCE * self.variance.sqrt();
        let share = if fewer {
            self.lost / self.expected
        } else {
            1.0
        };
        (self.expected >= EXPECTED).then_some(share)
    }

    /// Whether these losses may be of those of which this share is at random.
    fn fits(&self, share: f64) -> bool {
        self.lost <= self.expected * share + CHANCE * (self.variance * share).max(1.0).sqrt()
    }
}

/// Packets lost at one time.
#[derive(Clone, Copy, Debug)]
struct Accident {
    rtt: u32,
    at: u32,
    lost: f64,
}

/// The losses of a host by time.
fn accidents(lost: &Reservoir) -> Vec<Accident> {
    let mut kept = lost.kept.clone();
    kept.sort_unstable();
    let each = kept.chunk_by(|a, b| a == b).map(|same| Accident {
        rtt: same[0].0,
        at: same[0].1,
        lost: same.len() as f64,
    });
    each.collect()
}

/// Losses among packets that waited for little, and while the line was idle.
#[derive(Clone, Copy, Debug, Default)]
struct Tests([Test; WAITED.len() + BUSY_PACKETS.len()]);

impl Tests {
    fn of(m: &Measured, way: usize, line: Option<&Line<'_>>) -> Tests {
        let mut tests = Tests::default();
        let (Some(times), Some(lost)) = (times(m, way), lost(m, way)) else {
            return tests;
        };
        let lost = accidents(lost);
        let (by_rtt, by_load) = tests.0.split_at_mut(WAITED.len());
        if let [Some(least), Some(most)] = [0.0, 0.9].map(|q| times.quantile(q, |v, _| v)) {
            for (test, part) in by_rtt.iter_mut().zip(WAITED) {
                let little = least + (part * f64::from(most - least)) as u32;
                *test = Test::of(times, &lost, |rtt, _| rtt <= little);
            }
        }
        if let Some(line) = line {
            for (test, packets) in by_load.iter_mut().zip(BUSY_PACKETS) {
                *test = Test::of(times, &lost, |_, at| !line.busy(packets, at));
            }
        }
        tests
    }

    /// Whether the times at which the line was not full tell the share of the losses at random. Much fewer than expected
    /// may be so by chance, and then tell nothing.
    fn by_load(&self) -> bool {
        let tells = |t: &Test| {
            let share = t.share();
            share.is_some_and(|share| share < 1.0 || t.lost >= ABOUT * t.expected)
        };
        self.0[WAITED.len()..].iter().any(tells)
    }

    fn add(&mut self, other: &Tests) {
        for (sum, own) in self.0.iter_mut().zip(other.0) {
            sum.lost += own.lost;
            sum.expected += own.expected;
            sum.variance += own.variance;
        }
    }

    /// The share of a host's losses that are at random, by those of `all` hosts where its own do not contradict them.
    /// `waits`: whether how long its own waited counts, too.
    fn share(&self, all: &Tests, waits: bool) -> f64 {
        let pairs = self.0.iter().zip(&all.0).enumerate();
        let shares = pairs.filter_map(|(i, (own, sum))| {
            let together = sum.share().filter(|share| own.fits(*share));
            let counts = waits || i >= WAITED.len();
            together.or(own.share().filter(|_| counts))
        });
        shares.fold(1.0, f64::min)
    }
}

/// RTTs of packets with data from a host, or to it.
fn times(m: &Measured, way: usize) -> Option<&Reservoir> {
    let kinds = [[Sample::Sending; 2], [Sample::Bulk, Sample::Data]][way];
    let mut known = kinds.into_iter().filter_map(|kind| m.get(kind));
    known.find(|t| t.moments() >= LOSSES)
}

/// RTTs when such packets were lost.
fn lost(m: &Measured, way: usize) -> Option<&Reservoir> {
    m.get([Sample::LostUp, Sample::LostDown][way])
}

/// The capacity that a host's packets show.
fn own(m: &Measured, way: usize) -> Option<Rate> {
    capacity(m, [Sample::Up, Sample::Down][way], SOUND_PAIRS)
}

/// The shares of a host's losses, of packets from it and to it, that a replay does not bring about by itself: neither
/// the queue of the tapped link caused them nor that of the host's own link.
pub(super) fn elsewhere(m: &Measured, beyond: &Beyond<'_>) -> [f64; 2] {
    // As much as receive windows permit is in the queue then, whether that is its size or not.
    let held_back = m.held_back();
    let kinds = [Sample::Handshake, Sample::Data, Sample::Echo];
    let kept = kinds.into_iter().filter_map(|kind| m.get(kind));
    let least = kept.flat_map(|r| r.kept.iter().map(|k| k.0)).min();
    let share = |way: usize| {
        let own = own(m, way);
        let line = beyond.lines[way].filter(|line| loses(line, own));
        if let (Some(always), Some(_), false) = (&beyond.always[way], line, held_back[way]) {
            return Some(always.beyond(&Always::of(m, way)));
        }
        let slowest = own.or(line.map(|line| line.rate))?;
        let (times, lost) = (times(m, way)?, lost(m, way)?);
        if !held_back[way] && full(times, least, slowest) {
            return Some(0.0);
        }
        let by_median = below_median(times, lost);
        let tests = Tests::of(m, way, line.as_ref());
        // A queue that is full most of the time is in the median.
        Some(by_median.min(tests.share(&beyond.all[way], by_median == 1.0)))
    };
    [0, 1].map(|way| beyond.queue.elsewhere[way].min(share(way).unwrap_or(1.0)))
}

/// Whether the queue of a line is full nearly all the time, as some congestion controls keep it (BBR with little room): then
/// it loses at any RTT. `least`: the shortest RTT, microseconds.
fn full(times: &Reservoir, least: Option<u32>, line: Rate) -> bool {
    let quantile = |q: f64| times.quantile(q, |v, _| v);
    let (Some(low), Some(high), Some(least)) = (quantile(0.25), quantile(0.9), least) else {
        return false;
    };
    let [low, high] = [low, high].map(|v| u64::from(v.saturating_sub(least)));
    let packets = line.transmit(Bytes(FULL_QUEUE * FULL.0.0));
    4 * low >= 3 * high && Dur::from_micros(low) >= packets
}

/// The share of losses that come at any RTT. `times`: RTTs of all packets; `lost`: RTTs when packets were lost. Half
/// of the losses without a relation to the RTT are below the median; those of a full queue are above it. Where their
/// number could be by chance (two standard deviations), all are without a relation.
fn below_median(times: &Reservoir, lost: &Reservoir) -> f64 {
    let Some(median) = times.quantile(0.5, |v, _| v) else {
        return 1.0;
    };
    let losses = accidents(lost).len();
    let below = lost.kept.iter().filter(|(v, _)| *v <= median).count();
    let share = below as f64 / lost.kept.len().max(1) as f64;
    let by_chance = 0.5 - 1.0 / (losses.max(1) as f64).sqrt();
    if losses < LOSSES || share > by_chance {
        return 1.0;
    }
    2.0 * share
}
