//! Tells counters of the other direction from counters behind the exporter.

use std::collections::BTreeMap;

use super::{FlowCounts, FlowRecord};

/// ICMP and ICMPv6, whose requests and answers have equal lengths.
const ECHO: [u8; 2] = [1, 58];

/// nfdump has one place for the counters of the other direction (RFC 5103) and for those of the same packets as they leave
/// the exporter (elements 23 and 24). An exporter sends either. In most records of the latter, both counters agree.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// Records of each exporter with such counters, and those of them in which they agree. Exporter numbers have 16 bits.
    seen: BTreeMap<u32, [u64; 2]>,
}

impl Behind {
    /// Removes the other direction of a record if it is none.
    pub(crate) fn judge(&mut self, record: &mut FlowRecord, counts: &mut FlowCounts) {
        let Some(back) = record.reverse else { return };
        let near = |a: u64, b: u64| a.abs_diff(b) <= a.max(b) / 100;
        let [all, same] = self.seen.entry(record.exporter).or_default();
        if !ECHO.contains(&record.protocol) {
            *all += 1;
            *same +=
                u64::from(near(record.packets, back.packets) && near(record.bytes, back.bytes));
        }
        if *same * 2 > *all {
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
    fn most_records_of_an_exporter_decide() {
        let (mut behind, mut counts) = (Behind::default(), FlowCounts::default());
        let mut keeps = |exporter, protocol, own, back| {
            let mut record = record(exporter, protocol, own, back);
            behind.judge(&mut record, &mut counts);
            record.reverse.is_some()
        };
        // One exporter counts behind itself. Once, it loses packets.
        assert!(!keeps(1, 6, [10, 5_000], [10, 5_040]));
        assert!(!keeps(1, 6, [300, 5_000], [298, 4_960]));
        assert!(!keeps(1, 6, [100, 90_000], [90, 80_000]));
        assert!(!keeps(1, 1, [4, 336], [4, 336]));
        // Another one reports both directions: of pings, of a download, and of a question about the time.
        assert!(keeps(2, 1, [4, 336], [4, 336]));
        assert!(keeps(2, 6, [10, 500], [20, 30_000]));
        assert!(keeps(2, 17, [1, 76], [1, 76]));
        assert_eq!(counts.counted_behind, 4);
    }
}
