//! Meters the packets of a capture, without those that the capture system recorded twice.

use std::collections::VecDeque;

use swell_base::Warning;

use super::draft::one_packet;
use super::{FlowCounts, FlowRecord, FlowSkip, Metering, MeteringProcess};
use crate::copies::{Copies, OPENING};
use crate::{Error, Packet, Reader};

pub(super) struct Metered<'a> {
    pub(super) reader: Reader<'a>,
    meter: MeteringProcess,
    opening: VecDeque<(Packet, FlowRecord)>,
    opened: bool,
    /// What ended the file while its beginning was read.
    error: Option<Error>,
    copies: Copies,
    copied: u64,
}

impl<'a> Metered<'a> {
    pub(super) fn new(reader: Reader<'a>, options: Metering) -> Metered<'a> {
        Metered {
            reader,
            meter: MeteringProcess::new(options),
            opening: VecDeque::new(),
            opened: false,
            error: None,
            copies: Copies::default(),
            copied: 0,
        }
    }

    /// Meters one packet; false at the end. Records of flows that end are appended to `out`.
    pub(super) fn next(
        &mut self,
        counts: &mut FlowCounts,
        out: &mut Vec<FlowRecord>,
    ) -> Result<bool, Error> {
        if !self.opened {
            self.open(counts);
        }
        let next = match self.opening.pop_front() {
            Some(first) => Ok(Some(first)),
            None => self.fetch(counts),
        };
        match next {
            Ok(Some((packet, _))) if self.copies.is_copy(&packet) => self.copied += 1,
            Ok(Some((_, record))) => self.meter.packet(record, out),
            // Flows that are open when a capture ends consist of packets before the end, even if it ends with an error.
            _ => self.meter.finish(out),
        }
        next.map(|more| more.is_some())
    }

    /// A warning about copies that were left out.
    pub(super) fn captured_twice(&self) -> Option<Warning> {
        let packets = self.meter.counts().frames + self.copied;
        self.copies.warning(packets, self.copied)
    }

    fn open(&mut self, counts: &mut FlowCounts) {
        self.opened = true;
        while self.opening.len() < OPENING {
            match self.fetch(counts) {
                Ok(Some(packet)) => self.opening.push_back(packet),
                Ok(None) => break,
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        self.copies.begin(self.opening.iter().map(|(p, _)| p));
    }

    /// The next packet, and the record that it yields alone. Frames without an IP packet are counted.
    fn fetch(&mut self, counts: &mut FlowCounts) -> Result<Option<(Packet, FlowRecord)>, Error> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        loop {
            let place = self.reader.offset();
            match self.reader.next_frame(one_packet)? {
                Some(Ok(found)) => return Ok(Some(found)),
                Some(Err(_)) => {
                    counts.data_records += 1;
                    counts.skip(FlowSkip::NoPacket, place);
                }
                None => return Ok(None),
            }
        }
    }
}
