//! The state of a collecting process: exporters, their observation domains, and what was counted.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;

use foldhash::fast::FixedState;

use super::draft::{Clock, MILLI};
use super::samplers::Samplers;
use super::template::Templates;
use super::waiting::Waiting;
use super::{FlowCounts, FlowSkip, Limits, Protocol};

/// The first problem of a message. The rest of the message was read as far as possible. All problems are in the
/// counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset} of the message: {}", .reason.text())]
pub struct Refused {
    /// Offset in bytes from the beginning of the message.
    pub offset: u64,
    /// The reason.
    pub reason: FlowSkip,
}

/// The address of an exporter, the protocol of its messages, and the observation domain: IPFIX's own, the source id
/// (v9), engine type and number (v5), or sub-agent (sFlow).
type Key = (IpAddr, Protocol, u32);

/// The state of one observation domain of an exporter, to which sequence numbers, templates and samplers belong.
#[derive(Debug)]
pub(crate) struct Domain {
    key: Key,
    /// The expected sequence number of the next message.
    expected: Option<u32>,
    /// The number of the message that would continue the latest late one, and how many did so one after the other.
    late: (u32, u32),
    /// What was expected before late messages were followed. If they were no restart, messages return to it.
    left: Option<u32>,
    /// Hashes of recent messages.
    recent: VecDeque<u64>,
    /// When the exporter's uptime was zero, in nanoseconds since the Unix epoch.
    pub boot: Option<i64>,
    pub samplers: Samplers,
    /// Records of unknown sampling, until options data say that packets are sampled.
    pub unsampled: u64,
}

/// How far a late message's sequence number can be behind the expected one. If it is further behind, the exporter has
/// restarted.
const LATE: u32 = 10_000;
/// An exporter has restarted also if this many messages in a row are behind, each continuing the one before.
const IN_A_ROW: u32 = 8;
/// Number of recent messages of a domain among which a message is looked for. A switch that copies what it mirrors, or a
/// replicator of exports, sends both copies within milliseconds.
const RECENT: usize = 64;

/// Reads export messages of any exporters and protocols (RFC 5470: a Collecting Process): NetFlow 1, 5, 7 and 9,
/// IPFIX and sFlow 5. It opens no socket: the caller receives messages and passes them on.
///
/// Exporters are distinguished by address and observation domain and not by port, as in RFC 3954 section 5.1, because
/// some send templates and data from different ports.
///
/// ```
/// use std::net::{IpAddr, Ipv4Addr};
/// use swell_capture::flow::CollectingProcess;
///
/// // NetFlow version 5: one record of 3 packets and 180 bytes, from uptime 1 s to 4 s, exported at
/// // uptime 10 s, which was second 1000 of the Unix epoch.
/// let mut message = vec![0, 5, 0, 1, 0, 0, 0x27, 0x10, 0, 0, 0x03, 0xe8];
/// message.extend([0; 12]);
/// message.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 2]);
/// message.extend([0, 0, 0, 3, 0, 0, 0, 180, 0, 0, 0x03, 0xe8, 0, 0, 0x0f, 0xa0]);
/// message.extend([0x9c, 0x40, 0, 80, 0, 0x1b, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
///
/// let mut process = CollectingProcess::new();
/// let mut records = Vec::new();
/// let exporter = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// process.message(exporter, 0, &message, &mut records)?;
/// assert_eq!((records[0].packets, records[0].bytes), (3, 180));
/// assert_eq!((records[0].first, records[0].last), (991_000_000_000, 994_000_000_000));
/// # Ok::<(), swell_capture::flow::Refused>(())
/// ```
#[derive(Debug)]
pub struct CollectingProcess {
    limits: Limits,
    pub(crate) domains: Vec<Domain>,
    by_key: BTreeMap<Key, u32>,
    pub(crate) templates: Templates,
    pub(crate) waiting: Waiting,
    pub(crate) samplers: usize,
    pub(crate) counts: FlowCounts,
    pub(super) refused: Option<Refused>,
    /// Where the current message begins in the file, for the offsets in the counts.
    pub(super) base: u64,
    /// Whether offsets are those of whole messages, because the offset within a message has no meaning in the file.
    whole: bool,
    /// The latest time of sFlow datagrams whose arrival is not known.
    pub(crate) unstamped: i64,
}

impl Default for CollectingProcess {
    fn default() -> CollectingProcess {
        CollectingProcess::new()
    }
}

impl CollectingProcess {
    /// A process with the default [`Limits`].
    pub fn new() -> CollectingProcess {
        CollectingProcess::with_limits(Limits::default())
    }

    /// A process with other limits.
    pub fn with_limits(limits: Limits) -> CollectingProcess {
        CollectingProcess {
            limits,
            domains: Vec::new(),
            by_key: BTreeMap::new(),
            templates: Templates::default(),
            waiting: Waiting::default(),
            samplers: 0,
            counts: FlowCounts::default(),
            refused: None,
            base: 0,
            whole: false,
            unstamped: 0,
        }
    }

    /// From now on, offsets in the counts are those of whole packets in a capture.
    pub(crate) fn places_are_packets(&mut self) {
        self.whole = true;
    }

    /// Gives up waiting for templates. Waiting sets are counted as [`FlowSkip::NoTemplate`].
    pub fn finish(&mut self) {
        for at in self.waiting.clear() {
            self.counts.skip(FlowSkip::NoTemplate, at);
        }
    }

    /// What was read and skipped so far.
    pub fn counts(&self) -> &FlowCounts {
        &self.counts
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Where the current message begins.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(super) fn verdict(&mut self) -> Result<(), Refused> {
        self.refused.take().map_or(Ok(()), Err)
    }

    /// Counts data that was skipped at an offset of the message.
    #[cold]
    pub(crate) fn skip(&mut self, reason: FlowSkip, offset: usize) {
        let within = if self.whole { 0 } else { offset as u64 };
        self.counts.skip(reason, self.base + within);
        if reason.is_damage() && self.refused.is_none() {
            self.refused = Some(Refused {
                offset: offset as u64,
                reason,
            });
        }
    }

    /// The number of a domain, which is created if it is new.
    pub(crate) fn domain(
        &mut self,
        address: IpAddr,
        protocol: Protocol,
        domain: u32,
    ) -> Option<u32> {
        let key = (address, protocol, domain);
        // Fast path: consecutive messages often come from the same exporter.
        if let Some(last) = self.domains.last()
            && last.key == key
        {
            return Some(self.domains.len() as u32 - 1);
        }
        if let Some(number) = self.by_key.get(&key) {
            return Some(*number);
        }
        if self.domains.len() >= self.limits.domains {
            self.skip(FlowSkip::DomainLimit, 0);
            return None;
        }
        let number = self.domains.len() as u32;
        self.by_key.insert(key, number);
        self.domains.push(Domain {
            key,
            expected: None,
            late: (0, 0),
            left: None,
            recent: VecDeque::new(),
            boot: None,
            samplers: Samplers::default(),
            unsampled: 0,
        });
        Some(number)
    }

    /// Counts a message of a domain. True if an equal one is among the recent ones: then it is skipped. Messages that are
    /// equal differ neither in their sequence number nor in their time.
    pub(crate) fn repeats(&mut self, number: u32, protocol: Protocol, bytes: &[u8]) -> bool {
        self.counts.message(protocol);
        let domain = &mut self.domains[number as usize];
        let mut hasher = FixedState::with_seed(0).build_hasher();
        hasher.write(bytes);
        let hash = hasher.finish();
        let repeated = domain.recent.contains(&hash);
        if repeated {
            self.skip(FlowSkip::Repeated, 0);
        } else {
            if domain.recent.len() == RECENT {
                domain.recent.pop_front();
            }
            domain.recent.push_back(hash);
        }
        repeated
    }

    /// Checks the sequence numbers of a domain. The message has number `got`, and the next one should have
    /// `got + next`. `next` is `None` if a set could not be read.
    pub(crate) fn sequence(&mut self, domain: u32, got: u32, next: Option<u32>) {
        let counts = &mut self.counts;
        let Some(domain) = self.domains.get_mut(domain as usize) else {
            return;
        };
        if let Some(expected) = domain.expected {
            let ahead = got.wrapping_sub(expected);
            if ahead > 0 && ahead < 1 << 31 {
                if domain.left.take() != Some(got) {
                    counts.gaps += 1;
                    counts.missing += u64::from(ahead);
                }
            } else if ahead != 0 {
                counts.out_of_order += 1;
                let (continued, row) = domain.late;
                let row = if continued == got { row + 1 } else { 1 };
                domain.late = (next.map_or(got, |n| got.wrapping_add(n)), row);
                if expected.wrapping_sub(got) <= LATE && row < IN_A_ROW {
                    return;
                }
                domain.left = Some(expected);
            }
        }
        domain.late.1 = 0;
        domain.expected = next.map(|n| got.wrapping_add(n));
    }

    /// The clock of a NetFlow 9 message, whose export time is in whole seconds.
    ///
    /// Computed from single messages, the time of zero uptime would vary by up to a second, and the gaps between
    /// flows would vary with it. All computed values are at most a second before the true one, so the latest of them
    /// is the best estimate. A value outside of that second means another clock or a restart.
    pub(crate) fn v9_clock(&mut self, domain: u32, seconds: u32, uptime: u32) -> Clock {
        const SECOND: i64 = 1_000_000_000;
        let export = i64::from(seconds) * SECOND;
        let reading = export - i64::from(uptime) * MILLI;
        let boot = &mut self.domains[domain as usize].boot;
        let best = match *boot {
            Some(best) if (best - SECOND..=best).contains(&reading) => best,
            _ => reading,
        };
        *boot = Some(best);
        Clock {
            export,
            boot: Some(best),
        }
    }

    /// The time of an sFlow datagram whose arrival is not known, nanoseconds: its uptime counts from the first datagram of
    /// its agent. That one, and one after a restart, has the latest time of all before.
    pub(crate) fn uptime_alone(&mut self, domain: u32, uptime: u32) -> i64 {
        /// Datagrams are not older than ones before them by more.
        const RESTART: i64 = 5_000 * MILLI;
        let up = i64::from(uptime) * MILLI;
        let latest = self.unstamped;
        let boot = &mut self.domains[domain as usize].boot;
        let begun = (*boot).filter(|boot| boot + up >= latest - RESTART);
        let at = *boot.insert(begun.unwrap_or(latest - up)) + up;
        self.unstamped = latest.max(at);
        at
    }
}
