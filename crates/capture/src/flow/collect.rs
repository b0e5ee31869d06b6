//! Converts export messages to flow records: chooses the protocol by a message's version.

use std::net::IpAddr;

use super::process::{CollectingProcess, Refused};
use super::{FlowRecord, FlowSkip, sets, sflow, v5};

impl CollectingProcess {
    /// Reads one message, the payload of one datagram, and appends its records to `out`.
    ///
    /// `received` is the arrival time in nanoseconds since the Unix epoch. It is used for records without times in
    /// messages without a time (sFlow).
    ///
    /// # Errors
    /// The first problem of the message. Records before and after it are in `out`.
    pub fn message(
        &mut self,
        exporter: IpAddr,
        received: i64,
        bytes: &[u8],
        out: &mut Vec<FlowRecord>,
    ) -> Result<(), Refused> {
        self.message_at(exporter, Some(received), bytes, 0, out)
    }

    /// Like [`CollectingProcess::message`], for a message at offset `base` of a file, which may not tell when it arrived.
    pub(crate) fn message_at(
        &mut self,
        exporter: IpAddr,
        received: Option<i64>,
        bytes: &[u8],
        base: u64,
        out: &mut Vec<FlowRecord>,
    ) -> Result<(), Refused> {
        (self.refused, self.base) = (None, base);
        let version = match bytes {
            [a, b, ..] => u16::from_be_bytes([*a, *b]),
            _ => {
                self.skip(FlowSkip::CutMessage, 0);
                return self.verdict();
            }
        };
        match version {
            9 => sets::v9(self, exporter, bytes, out),
            10 => sets::ipfix(self, exporter, bytes, out),
            // The version field of sFlow has 32 bits.
            0 if bytes.starts_with(&[0, 0, 0, 5]) => {
                sflow::message(self, exporter, received, bytes, out);
            }
            version => match v5::Layout::of(version) {
                Some(layout) => self.fixed(&layout, exporter, bytes, out),
                None => self.skip(FlowSkip::Version, 0),
            },
        }
        self.verdict()
    }

    /// Whether bytes are almost certainly a message of a supported protocol: all lengths and counts agree.
    pub fn is_message(bytes: &[u8]) -> bool {
        let Some(&[a, b]) = bytes.first_chunk() else {
            return false;
        };
        match u16::from_be_bytes([a, b]) {
            9 => sets::is_v9(bytes),
            10 => sets::is_ipfix(bytes),
            0 => sflow::is_message(bytes),
            version => {
                let Some(layout) = v5::Layout::of(version) else {
                    return false;
                };
                let count = bytes
                    .get(2..4)
                    .map_or(0, |c| u16::from_be_bytes([c[0], c[1]]));
                (1..=layout.most).contains(&count)
                    && bytes.len() == layout.header + layout.record * usize::from(count)
            }
        }
    }

    /// Reads a message of NetFlow 1, 5 or 7.
    fn fixed(
        &mut self,
        layout: &v5::Layout,
        exporter: IpAddr,
        bytes: &[u8],
        out: &mut Vec<FlowRecord>,
    ) {
        let Some(header) = v5::header(layout, bytes) else {
            return self.skip(FlowSkip::CutMessage, 0);
        };
        let Some(number) = self.domain(exporter, layout.protocol, header.domain) else {
            return;
        };
        if self.repeats(number, layout.protocol, bytes) {
            return;
        }
        // Cannot panic: the header has been read.
        let body = bytes.get(layout.header..).unwrap_or_default();
        let whole = body.len() / layout.record;
        let count = usize::from(header.count);
        if count > whole {
            self.skip(FlowSkip::CutMessage, bytes.len());
        } else if count * layout.record != body.len() {
            self.skip(FlowSkip::BadMessage, layout.header + count * layout.record);
        }
        let taken = count.min(whole);
        v5::records(
            layout,
            &header,
            number,
            &body[..taken * layout.record],
            &mut self.counts,
            out,
        );
        if let Some(sequence) = header.sequence {
            self.sequence(number, sequence, Some(u32::from(header.count)));
        }
    }
}
