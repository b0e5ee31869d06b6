//! Warnings about a capture that accompany results.

use crate::counts::Counts;
use crate::skip::Skip;
use swell_base::{Code, Warning};

impl Counts {
    /// Warnings about lost or skipped records and odd values, as sentences with the numbers in them. Cut packets and
    /// undecoded transports are left to the caller, who knows whether they matter.
    pub fn doubts(&self) -> Vec<Warning> {
        let mut doubts = Vec::new();
        let records = self.records;
        let mut warn = |code: Code, n: u64, message: &str| {
            if n > 0 {
                let message = format!("{n} of {records} captured frames {message}");
                doubts.push(Warning::warning(code, message));
            }
        };
        for (link, n) in &self.unsupported_links {
            let message = format!("are of a link type that is not decoded: {link}");
            warn(Code::CaptureLinkType, *n, &message);
        }
        let short = self.skipped(Skip::ShortLink) + self.skipped(Skip::ShortIp);
        warn(
            Code::CaptureShort,
            short,
            "end before their IP header does and were skipped: the snap length is too small",
        );
        warn(
            Code::CaptureBadIp,
            self.skipped(Skip::BadIp),
            "have an IP header that contradicts itself and were skipped",
        );
        warn(
            Code::CaptureBadRecord,
            self.skipped(Skip::BadRecord),
            "are in a damaged record and were skipped",
        );
        warn(
            Code::CaptureShortTransport,
            self.short_transport,
            "end before their transport header does: their bytes count, their ports are unknown",
        );
        warn(
            Code::CaptureBadTransport,
            self.bad_transport,
            "have a TCP or UDP header that contradicts itself: their bytes count, no more",
        );
        warn(
            Code::CaptureTimes,
            self.odd_times,
            "have a time that cannot be right",
        );
        warn(
            Code::CaptureNoTimes,
            self.without_time,
            "have no time and were given that of the frame before",
        );
        if self.dropped > 0 {
            let message = format!(
                "the capture system dropped {} packets beside the {records} in the file, for lack of time or memory: they \
                 count as never sent",
                self.dropped
            );
            doubts.push(Warning::warning(Code::CaptureDropped, message));
        }
        if self.unknown_blocks > 0 {
            let message = format!(
                "{} blocks of unknown type were skipped",
                self.unknown_blocks
            );
            doubts.push(Warning::note(Code::CaptureBlocks, message));
        }
        doubts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkType;

    #[test]
    fn a_clean_capture_raises_none_and_every_kind_of_loss_raises_one() {
        let mut counts = Counts::default();
        (counts.records, counts.packets, counts.tcp, counts.cut) = (10, 10, 10, 3);
        assert_eq!(counts.doubts(), []);
        // ARP and similar protocols occur in every trace.
        counts.skip(Skip::NotIp, LinkType::ETHERNET);
        assert_eq!(counts.doubts(), []);
        for (i, skip) in Skip::ALL
            .into_iter()
            .filter(|s| *s != Skip::NotIp)
            .enumerate()
        {
            counts.skip(skip, LinkType(127));
            // Both kinds of short frames share a sentence.
            let expected = [1, 2, 2, 3, 4][i];
            assert_eq!(counts.doubts().len(), expected, "{skip:?}");
        }
        let message = &counts.doubts()[0].message;
        assert_eq!(
            message,
            "1 of 10 captured frames are of a link type that is not decoded: IEEE 802.11 radiotap (127)"
        );
    }
}
