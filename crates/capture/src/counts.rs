//! Counts of what was read and of what was lost on the way.

use crate::skip::Skip;
use crate::{Frame, LinkType, Packet, Transport};
use std::collections::BTreeMap;

/// Counts over a trace, valid after every packet and after an error.
///
/// Nothing is lost silently: `records` is always `packets` plus everything skipped, and `packets`
/// is always the sum over the kinds of transport.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packet records read.
    pub records: u64,
    /// Packets decoded at least up to the IP header.
    pub packets: u64,
    /// Bytes on the wire over all records, as the capture states them.
    pub wire_bytes: u64,
    /// Bytes captured over all records.
    pub captured_bytes: u64,
    /// Records with fewer bytes captured than on the wire (cut by the snap length).
    pub cut: u64,
    /// Records whose format gives no time (pcapng simple packet blocks). They get the time of the previous record.
    pub without_time: u64,
    /// Records with an impossible time: a fraction of more than a second, or a date beyond the year 2262, which does
    /// not fit.
    pub odd_times: u64,
    /// Packets with a usable TCP header.
    pub tcp: u64,
    /// Packets with a usable UDP header.
    pub udp: u64,
    /// ICMP and ICMPv6 packets.
    pub icmp: u64,
    /// Fragments other than the first.
    pub fragments: u64,
    /// Packets of other protocols: tunnels, ESP, SCTP, OSPF.
    pub other: u64,
    /// Packets whose captured bytes end before the transport header does.
    pub short_transport: u64,
    /// Packets with a TCP or UDP header that contradicts itself.
    pub bad_transport: u64,
    /// Frames of each link type that is not decoded.
    pub unsupported_links: BTreeMap<LinkType, u64>,
    /// Packets that the capture system dropped for lack of resources, over all interfaces, according to the last interface
    /// statistics of pcapng (`isb_ifdrop` and `isb_osdrop`).
    pub dropped: u64,
    /// pcapng blocks that hold no packet and are not needed: name resolution, statistics, secrets, comments.
    pub other_blocks: u64,
    /// pcapng blocks of a type this crate does not know.
    pub unknown_blocks: u64,
    skipped: [u64; Skip::ALL.len()],
}

impl Counts {
    /// Records skipped for a reason.
    pub fn skipped(&self, reason: Skip) -> u64 {
        self.skipped[reason as usize]
    }

    /// Records skipped for any reason.
    pub fn skipped_total(&self) -> u64 {
        self.skipped.iter().sum()
    }

    #[inline]
    pub(crate) fn record(&mut self, frame: &Frame<'_>) {
        self.records += 1;
        self.wire_bytes += u64::from(frame.wire_len);
        self.captured_bytes += frame.data.len() as u64;
        self.cut += u64::from(frame.data.len() < frame.wire_len as usize);
    }

    #[inline]
    pub(crate) fn packet(&mut self, packet: &Packet) {
        self.packets += 1;
        match packet.transport {
            Transport::Tcp(_) => self.tcp += 1,
            Transport::Udp { .. } => self.udp += 1,
            Transport::Icmp => self.icmp += 1,
            Transport::Fragment => self.fragments += 1,
            Transport::Other(6 | 17) => self.bad_transport += 1,
            Transport::Other(_) => self.other += 1,
            Transport::Truncated(_) => self.short_transport += 1,
        }
    }

    #[cold]
    pub(crate) fn skip(&mut self, reason: Skip, link: LinkType) {
        self.skipped[reason as usize] += 1;
        if reason == Skip::UnsupportedLink {
            *self.unsupported_links.entry(link).or_default() += 1;
        }
    }
}
