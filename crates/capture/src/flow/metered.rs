//! Meters the packets of a capture, without those that the capture system recorded twice.

use std::collections::VecDeque;

use swell_base::{Code, Warning};

use super::draft::one_packet;
use super::{FlowCounts, FlowRecord, FlowSkip, Metering, MeteringProcess};
use crate::copies::{Copies, opens};
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

    /// Warnings about copies that were left out, and about stamps.
    pub(super) fn doubts(&self) -> Vec<Warning> {
        let counts = self.meter.counts();
        let mut doubts = Vec::new();
        doubts.extend(
            self.copies
                .warnings(counts.received + self.copied, self.copied),
        );
        let mut warn = |n: u64, code: Code, message: &str| {
            if n > 0 {
                doubts.push(Warning::warning(code, format!("{n} {message}")));
            }
        };
        warn(
            counts.far_off,
            Code::FarOffTimes,
            "packets are stamped more than a minute ahead of those around them: they count at the time of the packet \
             before",
        );
        warn(
            counts.behind,
            Code::TimeStepsBack,
            "packets are more than 5 s older than one before them: they count at the later time",
        );
        warn(
            counts.steps_back,
            Code::ClockSet,
            "times the capture steps back for good: the clock was set, or captures were joined in the wrong order. Flows \
             end there",
        );
        doubts
    }

    fn open(&mut self, counts: &mut FlowCounts) {
        self.opened = true;
        while self.needs_more() {
            match self.fetch(counts) {
                Ok(Some(packet)) => self.opening.push_back(packet),
                Ok(None) => break,
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        let first: Vec<&Packet> = self.opening.iter().map(|(p, _)| p).collect();
        self.copies.begin(&first);
    }

    /// Whether more packets have to be examined before any is used.
    fn needs_more(&self) -> bool {
        let ends = self.opening.front().zip(self.opening.back());
        ends.is_none_or(|((first, _), (last, _))| opens(first, last, self.opening.len()))
    }

    /// The next packet, and the record that it yields alone. Frames without an IP packet are counted, and the reasons in
    /// the counts of the capture.
    fn fetch(&mut self, counts: &mut FlowCounts) -> Result<Option<(Packet, FlowRecord)>, Error> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        loop {
            let place = self.reader.offset();
            let Some((found, link)) = self.reader.next_frame(|f| (one_packet(f), f.link))? else {
                return Ok(None);
            };
            match found {
                Ok(found) => {
                    self.reader.count(Ok(&found.0));
                    return Ok(Some(found));
                }
                Err(reason) => {
                    self.reader.count(Err((reason, link)));
                    counts.skip(FlowSkip::NoIp, place);
                }
            }
        }
    }
}
