//! Tells counters of the other direction from counters behind the exporter.

use std::collections::BTreeMap;

use super::{FlowCounts, FlowRecord};

const TCP: u8 = 6;
/// Shorter connections have equal counters in both directions too often: a scan's SYN and RST, for example. So have calls
/// (RTP), pings, and questions with one answer (NTP, SNMP), however long. Only TCP sends data one way and short
/// acknowledgements the other way.
const PACKETS: u64 = 4;
/// Records of an exporter before which nothing is left out.
const ENOUGH: u64 = 8;

/// nfdump has one place for the counters of the other direction (RFC 5103) and for those of the same packets as they leave
/// the exporter (elements 23 and 24). An exporter sends either. In most TCP records of the latter, both counters agree.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// TCP records of each exporter with such counters, and those of them in which they agree. Exporter numbers have 16
    /// bits.
    seen: BTreeMap<u32, [u64; 2]>,
}

impl Behind {
    /// Removes the other direction of a record if it is none, as far as the records up to this one tell.
    pub(crate) fn judge(&mut self, record: &mut FlowRecord, counts: &mut FlowCounts) {
        let Some(back) = record.reverse else { return };
        let near = |a: u64, b: u64| a.abs_diff(b) <= a.max(b) / 100;
        let [all, same] = self.seen.entry(record.exporter).or_default();
        if record.protocol == TCP && record.packets.min(back.packets) >= PACKETS {
            *all += 1;
            *same +=
                u64::from(near(record.packets, back.packets) && near(record.bytes, back.bytes));
        }
        if *all >= ENOUGH && *same * 2 > *all {
            record.reverse = None;
            counts.counted_behind += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Reverse;

    fn record(exporter: u32, protocol: u8, own: [u64; 2], back: [u64; 2]) -> FlowRecord {
        let reverse = Reverse {
            first: 0,
            last: 0,
            packets: back[0],
            bytes: back[1],
            tcp_flags: None,
        };
        FlowRecord {
            exporter,
            protocol,
            packets: own[0],
            bytes: own[1],
            reverse: Some(reverse),
            ..FlowRecord::BLANK
        }
    }

    #[test]
    fn most_tcp_records_of_an_exporter_decide() {
        let (mut behind, mut counts) = (Behind::default(), FlowCounts::default());
        let mut keeps = |exporter, protocol, own, back| {
            let mut record = record(exporter, protocol, own, back);
            behind.judge(&mut record, &mut counts);
            record.reverse.is_some()
        };
        // One exporter counts behind itself. Seven records do not tell.
        for _ in 0..7 {
            assert!(keeps(1, 6, [10, 5_000], [10, 5_040]));
        }
        assert!(!keeps(1, 6, [300, 5_000], [298, 4_960]));
        // Once, it loses packets.
        assert!(!keeps(1, 6, [100, 90_000], [90, 80_000]));
        assert!(!keeps(1, 1, [4, 336], [4, 336]));
        // Another one reports both directions, and has a connection with as many bytes each way.
        for _ in 0..20 {
            assert!(keeps(2, 6, [10, 500], [20, 30_000]));
            assert!(keeps(2, 6, [10, 500], [10, 500]));
        }
        assert_eq!(counts.counted_behind, 3);
    }

    #[test]
    fn symmetric_traffic_is_no_evidence() {
        let (mut behind, mut counts) = (Behind::default(), FlowCounts::default());
        let mut keeps = |protocol, own, back| {
            let mut record = record(1, protocol, own, back);
            behind.judge(&mut record, &mut counts);
            record.reverse.is_some()
        };
        for _ in 0..100 {
            // Questions about the time, calls, pings, and scanned ports.
            assert!(keeps(17, [1, 76], [1, 76]));
            assert!(keeps(17, [3_000, 600_000], [2_990, 598_000]));
            assert!(keeps(1, [400, 33_600], [400, 33_600]));
            assert!(keeps(58, [400, 33_600], [400, 33_600]));
            assert!(keeps(6, [1, 40], [1, 40]));
        }
        assert_eq!(counts.counted_behind, 0);
    }
}
