//! The first pass: which flows pass both taps, how far the clocks of the taps are apart, and which way is out.

use std::fmt;

use swell_base::Dur;
use swell_capture::Packet;

use super::clocks::{Clocks, Lag};
use super::flow::{Flow, Places, opening, print};
use crate::hosts::Hosts;
use crate::sides::Network;

/// Flows of the first tap that are compared at once, if nothing else is said: about 100 MB of memory.
pub const MOST_FLOWS: usize = 1 << 19;

/// Two intervals overlap if less than this is between them, nanoseconds: a flow of one packet passes the taps at
/// different times.
const NEAR: i64 = 1_000_000_000;

/// Packets that go outward pass the second tap earlier by at most this, nanoseconds. More is another order of taps.
pub(super) const EARLIER: i64 = 1_000_000;

/// Compares two captures of one path: all packets of the first tap, then all packets of the second.
#[derive(Debug)]
pub struct Matcher {
    most: usize,
    flows: Vec<Seen>,
    places: Places,
    sides: [Hosts; 2],
    /// Times of the first and the last packet at each tap.
    spans: [Option<[i64; 2]>; 2],
    /// SYNs at the first tap, and how many of them were seen at the second tap under other addresses.
    syns: Vec<Syn>,
    syn_places: Places,
    translated: u64,
    forgotten: Forgotten,
}

/// A flow of the first tap.
#[derive(Clone, Copy, Debug)]
struct Seen {
    flow: Flow,
    /// Times of the first and the last packet at each tap. Nothing was seen if the first is later.
    times: [[i64; 2]; 2],
    packets: u32,
    bytes: u64,
    /// The first packet of each direction that can be told from others: its time and what tells it.
    marks: [Option<(i64, u64)>; 2],
    /// How much later the second tap saw these packets, by its own clock.
    lags: [Option<i64>; 2],
}

#[derive(Clone, Copy, Debug)]
struct Syn {
    print: u64,
    /// Another one looks the same, or it was seen at the second tap.
    done: bool,
}

/// Flows that were not compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// How many.
    pub flows: u64,
    /// Their network-layer bytes at the first tap, until they were forgotten.
    pub bytes: u64,
}

/// Nothing seen.
const NEVER: [i64; 2] = [i64::MAX, i64::MIN];

fn extend(span: &mut [i64; 2], time: i64) {
    *span = [span[0].min(time), span[1].max(time)];
}

/// Why two captures cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoMatch {
    /// No flow of the first tap passes the second.
    NoFlow {
        /// Connections that pass both taps under different addresses.
        translated: u64,
    },
    /// Flows with the same addresses and ports are at both taps, but at different times.
    Apart,
    /// Outward packets pass the second tap first, earlier by this.
    Order(Dur),
}

impl fmt::Display for NoMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoMatch::NoFlow { translated: 0 } => f.write_str(
                "no flow passes both taps: there is no packet with the same addresses and ports in both captures",
            ),
            NoMatch::NoFlow { translated } => write!(
                f,
                "no flow passes both taps under the same addresses and ports, but {translated} connections have the same \
                 sequence numbers: a NAT between the taps translates their addresses"
            ),
            NoMatch::Apart => f.write_str(
                "no flow passes both taps at the same time: the captures were not made at the same time",
            ),
            NoMatch::Order(by) => write!(
                f,
                "packets from inside to outside pass the second tap {by} before the first: the taps are in the other order"
            ),
        }
    }
}

/// What the comparison found.
#[derive(Clone, Debug)]
pub struct Matched {
    flows: Vec<Flow>,
    places: Places,
    /// Sides at each tap, decided.
    pub(super) sides: [Hosts; 2],
    /// Whether inside at the second tap is outside at the first.
    pub(super) turned: bool,
    /// Common time of both captures by the first tap's clock, nanoseconds.
    pub(super) common: [i64; 2],
    /// Clocks of the taps.
    pub clocks: Clocks,
    /// Connections that pass both taps under different addresses.
    pub translated: u64,
    /// Flows that were not compared, because there were too many.
    pub forgotten: Forgotten,
}

impl Matched {
    /// Whether a packet is of a flow that passes both taps.
    #[inline]
    pub(super) fn through(&self, p: &Packet) -> bool {
        let (flow, _) = Flow::of(p);
        self.places.find(&flow, &self.flows, |f| *f).is_some()
    }

    /// Number of flows that pass both taps.
    pub fn flows(&self) -> u64 {
        self.flows.len() as u64
    }

    /// How long both taps recorded.
    pub fn duration(&self) -> Dur {
        Dur::from_nanos(self.common[1].abs_diff(self.common[0]))
    }
}

impl Matcher {
    /// Compares at most `most` flows. `inside` are the networks that are inside; if empty, the packets decide.
    pub fn new(inside: &[Network], most: usize) -> Matcher {
        Matcher {
            most: most.max(2),
            flows: Vec::new(),
            places: Places::default(),
            sides: [0, 1].map(|_| Hosts::new(inside.to_vec())),
            spans: [None; 2],
            syns: Vec::new(),
            syn_places: Places::default(),
            translated: 0,
            forgotten: Forgotten::default(),
        }
    }

    fn witness(&mut self, tap: usize, p: &Packet) {
        self.sides[tap].witness(p);
        extend(self.spans[tap].get_or_insert(NEVER), p.time);
    }

    /// Takes the next packet of the first tap.
    pub fn first(&mut self, p: &Packet) {
        self.witness(0, p);
        let (flow, back) = Flow::of(p);
        let place = match self.places.find(&flow, &self.flows, |f| f.flow) {
            Some(place) => place,
            None => self.begin(flow),
        };
        let seen = &mut self.flows[place];
        extend(&mut seen.times[0], p.time);
        seen.packets = seen.packets.saturating_add(1);
        seen.bytes += u64::from(p.ip_len);
        let mark = &mut seen.marks[usize::from(back)];
        if mark.is_none() {
            *mark = print(p).map(|print| (p.time, print));
        }
        if let Some(print) = opening(p)
            && self.syns.len() < self.most
        {
            match self.syn_places.find(&print, &self.syns, |s| s.print) {
                // Repeated, or of a scanner that gives all its SYNs one number.
                Some(i) => self.syns[i].done |= seen.packets == 1,
                None => {
                    self.syns.push(Syn { print, done: false });
                    self.syn_places.add_last(&self.syns, |s| s.print);
                }
            }
        }
    }

    /// A place for a flow. If there is none left, the flows with the fewest packets are forgotten.
    fn begin(&mut self, flow: Flow) -> usize {
        let mut few = 1;
        while self.flows.len() >= self.most {
            let before = self.flows.len();
            let forgotten = &mut self.forgotten;
            self.flows.retain(|seen| {
                let keep = seen.packets > few;
                if !keep {
                    forgotten.flows += 1;
                    forgotten.bytes += seen.bytes;
                }
                keep
            });
            few = few.saturating_mul(2);
            if before - self.flows.len() > self.most / 8 {
                break;
            }
        }
        if few > 1 {
            self.places = Places::of(&self.flows, |f| f.flow);
        }
        self.flows.push(Seen {
            flow,
            times: [NEVER; 2],
            packets: 0,
            bytes: 0,
            marks: [None; 2],
            lags: [None; 2],
        });
        self.places.add_last(&self.flows, |f| f.flow);
        self.flows.len() - 1
    }

    /// Takes the next packet of the second tap.
    pub fn second(&mut self, p: &Packet) {
        self.witness(1, p);
        let (flow, back) = Flow::of(p);
        if let Some(place) = self.places.find(&flow, &self.flows, |f| f.flow) {
            let seen = &mut self.flows[place];
            extend(&mut seen.times[1], p.time);
            let way = usize::from(back);
            if let (Some((at, mark)), None) = (seen.marks[way], seen.lags[way])
                && print(p) == Some(mark)
            {
                seen.lags[way] = Some(p.time.saturating_sub(at));
            }
        } else if let Some(print) = opening(p)
            && let Some(i) = self.syn_places.find(&print, &self.syns, |s| s.print)
            && !std::mem::replace(&mut self.syns[i].done, true)
        {
            self.translated += 1;
        }
    }

    /// Compares the flows.
    ///
    /// # Errors
    /// If no flow passes both taps at the same time, or outward packets pass the second tap first.
    pub fn finish(mut self) -> Result<Matched, NoMatch> {
        self.sides.iter_mut().for_each(Hosts::decide);
        self.flows.retain(|f| f.times[1] != NEVER);
        if self.flows.is_empty() {
            let translated = self.translated;
            return Err(NoMatch::NoFlow { translated });
        }
        let mut lags = Vec::new();
        // Bytes of flows by whether both taps agree on which way is out.
        let mut agree = [0u64; 2];
        for seen in &self.flows {
            let outward = (self.sides.iter_mut()).map(|hosts| {
                let ends = seen.flow.addresses().map(|a| hosts.id(a));
                hosts.outward(ends[0], ends[1])
            });
            let outward: Vec<Option<bool>> = outward.collect();
            if let [Some(a), Some(b)] = outward[..] {
                agree[usize::from(a == b)] += seen.bytes;
            }
            // Which way a flow goes whose ends are on one side is not known, so it tells no delay.
            let Some(forth) = outward[0] else { continue };
            for (way, out) in [(0, forth), (1, !forth)] {
                if let (Some((at, _)), Some(lag)) = (seen.marks[way], seen.lags[way]) {
                    lags.push(Lag { at, lag, out });
                }
            }
        }
        let begun = |f: &Seen| f.times[1][0].saturating_sub(f.times[0][0]);
        let clocks = Clocks::of(&lags, self.flows.iter().map(begun).collect());
        let [a, b] = self.spans.map(Option::unwrap_or_default);
        let own = |time: i64| clocks.by_first(time);
        let common = [a[0].max(own(b[0])), a[1].min(own(b[1]))];
        self.flows.retain(|f| {
            let [here, there] = f.times;
            here[0] <= own(there[1]).saturating_add(NEAR)
                && own(there[0]) <= here[1].saturating_add(NEAR)
        });
        if self.flows.is_empty() || common[0] >= common[1] {
            return Err(NoMatch::Apart);
        }
        if let Some(lag) = clocks.lag
            && lag.saturating_add(clocks.doubt()) < -EARLIER
        {
            return Err(NoMatch::Order(Dur::from_nanos(lag.unsigned_abs())));
        }
        let flows: Vec<Flow> = self.flows.iter().map(|f| f.flow).collect();
        Ok(Matched {
            places: Places::of(&flows, |f| *f),
            flows,
            sides: self.sides,
            turned: agree[0] > agree[1],
            common,
            clocks,
            translated: self.translated,
            forgotten: self.forgotten,
        })
    }
}
