//! Packets of several files of one link, merged by time.
//!
//! Files may follow each other, as those of a rotated capture, or overlap: one for each direction or interface. They are
//! opened when their time has come, so few are open at once.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use swell_base::{Code, Warning};
use swell_capture::{Packet, Packets, Reader, WINDOW};

use super::counts::{Counted, FileCounts};
use super::options::{file_name, in_file};
use super::source::{Opened, Progress, Source};
use crate::Error;

/// A file that is not being read yet.
struct Waiting {
    /// Time of its first packet; the earliest possible if the file cannot be read twice or has none.
    begins: i64,
    /// Place among the files, as they are named.
    place: usize,
    file: Input,
}

enum Input {
    Open(Opened),
    Path(PathBuf),
}

/// A file that is being read.
struct Active {
    /// Time of its first packet.
    begins: i64,
    /// When its latest packet was due.
    latest: Option<i64>,
    /// What ended it early.
    damage: Option<Warning>,
    place: usize,
    name: String,
    reader: Reader<'static>,
    source: Source,
    /// Its next packet, if it has been read, and the time at which it is due.
    head: Option<(i64, Packet)>,
    /// The packets after that which were read to tell whether a stamp is right, or whether the file ends soon.
    after: VecDeque<Packet>,
}

/// A packet so far ahead of the one before is wrongly stamped if the next one is back, nanoseconds.
const LEAP: i64 = 60_000_000_000;

/// A file that was read to its end.
pub(super) struct Ended {
    pub place: usize,
    pub counts: FileCounts,
    pub doubts: Vec<Warning>,
    pub sha256: String,
}

/// Files of one link. Those that overlap in time are merged: each packet of the earliest time comes next. Files that
/// follow each other are read one after the other: between two of them, packets end once.
pub(super) struct Merged<'p> {
    /// By the times at which they begin.
    waiting: VecDeque<Waiting>,
    active: Vec<Active>,
    ended: Vec<Ended>,
    progress: &'p Progress,
    /// Numbers of interfaces, by file and number in it. Files that are read alone keep their own.
    interfaces: BTreeMap<(usize, u32), u32>,
    next_interface: u32,
    /// Names of files that overlap by more than batches of packets do.
    overlap: Vec<String>,
    /// Files of the present stretch, without a time at which no file is read. Those that follow each other count as one.
    stretch: usize,
    failure: Option<Error>,
}

impl<'p> Merged<'p> {
    /// Takes these files, of which the first is open already.
    ///
    /// # Errors
    /// If a file cannot be read or is no capture.
    pub(super) fn new(
        first: Opened,
        others: &[PathBuf],
        progress: &'p Progress,
    ) -> Result<Merged<'p>, Error> {
        let mut waiting = Vec::new();
        waiting.push(Waiting {
            begins: match others {
                [] => i64::MIN,
                _ => begins(Path::new(&first.name))?,
            },
            place: 0,
            file: Input::Open(first),
        });
        for (place, path) in (1..).zip(others) {
            waiting.push(Waiting {
                begins: begins(path)?,
                place,
                file: Input::Path(path.clone()),
            });
        }
        waiting.sort_by_key(|w| (w.begins, w.place));
        Ok(Merged {
            waiting: waiting.into(),
            active: Vec::new(),
            ended: Vec::new(),
            progress,
            interfaces: BTreeMap::new(),
            next_interface: 0,
            overlap: Vec::new(),
            stretch: 0,
            failure: None,
        })
    }

    /// Opens the next files to read. False if none are left.
    ///
    /// # Errors
    /// If a file cannot be read, is no capture or has no packets. Also if this was so of one of those before.
    pub(super) fn begin(&mut self) -> Result<bool, Error> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.stretch = 0;
        self.overlap.clear();
        match self.waiting.pop_front() {
            None => Ok(false),
            Some(next) => self.activate(next).map(|()| true),
        }
    }

    /// The files that were read to their end since the last call, in the order in which they are named.
    pub(super) fn ended(&mut self) -> Vec<Ended> {
        let mut ended = std::mem::take(&mut self.ended);
        ended.sort_by_key(|e| e.place);
        ended
    }

    /// A note that files overlap.
    pub(super) fn doubt(&self) -> Option<Warning> {
        (!self.overlap.is_empty()).then(|| {
            let text = format!(
                "{} overlap in time: their packets are merged in the order of their times, as those of one link",
                self.overlap.join(", ")
            );
            Warning::note(Code::PutInOrder, text)
        })
    }

    fn activate(&mut self, next: Waiting) -> Result<(), Error> {
        let mut opened = match next.file {
            Input::Open(opened) => opened,
            Input::Path(path) => Opened::new(&path, self.progress)?,
        };
        let reader = Reader::named(&opened.name.clone(), opened.bytes()).map_err(Error::usage)?;
        let Opened { name, source, .. } = opened;
        if !self.follows(next.begins) {
            self.stretch += 1;
            if self.interfaces.is_empty() {
                let all = self.active.iter().flat_map(|file| {
                    let own = 0..self.next_interface;
                    own.map(|i| ((file.place, i), i))
                });
                self.interfaces = all.collect();
            }
        }
        self.active.push(Active {
            begins: next.begins,
            latest: None,
            damage: None,
            place: next.place,
            name,
            reader,
            source,
            head: None,
            after: VecDeque::new(),
        });
        Ok(())
    }

    /// Whether a file that begins at this time follows the one that is being read, as rotated files do: they overlap by no
    /// more than a batch of packets.
    fn follows(&mut self, begins: i64) -> bool {
        let [file] = &self.active[..] else {
            return false;
        };
        if begins.saturating_sub(file.begins) <= WINDOW {
            return false;
        }
        let mut ahead = std::mem::take(&mut self.active[0].after);
        let is_batch = |p: &Packet| p.time.saturating_sub(begins) <= WINDOW;
        let mut packet = Packet::default();
        let mut follows = ahead.iter().all(is_batch);
        while follows && self.advance(0, &mut packet) {
            follows = is_batch(&packet);
            ahead.push_back(packet);
        }
        self.active[0].after = ahead;
        follows
    }

    /// Reads the next packet of a file; false at its end.
    fn advance(&mut self, i: usize, packet: &mut Packet) -> bool {
        let file = &mut self.active[i];
        if let Some(after) = file.after.pop_front() {
            *packet = after;
            return true;
        }
        if file.damage.is_some() {
            return false;
        }
        match file.reader.read_into(packet) {
            Ok(true) => {
                let place = file.place;
                packet.interface = self.interface(place, packet.interface);
                true
            }
            Ok(false) => false,
            Err(error) => {
                let damage = Warning::warning(Code::TraceDamaged, error.to_string());
                file.damage = Some(damage);
                false
            }
        }
    }

    /// Makes the next packet of a file its head; false at its end.
    fn draw(&mut self, i: usize) -> bool {
        let mut head = Packet::default();
        if !self.advance(i, &mut head) {
            return false;
        }
        let mut due = head.time;
        let before = self.active[i].latest.unwrap_or(due);
        if due > before.saturating_add(LEAP) {
            let mut after = Packet::default();
            if self.advance(i, &mut after) {
                if after.time < due.saturating_sub(LEAP) {
                    due = before;
                }
                self.active[i].after.push_front(after);
            }
        }
        let file = &mut self.active[i];
        if file.latest.is_none() {
            file.begins = due;
        }
        file.latest = Some(due);
        file.head = Some((due, head));
        true
    }

    /// The number of an interface among those of all files.
    fn interface(&mut self, place: usize, own: u32) -> u32 {
        // Files that follow each other are those of one capture.
        if self.stretch == 1 && self.interfaces.is_empty() {
            self.next_interface = self.next_interface.max(own + 1);
            return own;
        }
        *self.interfaces.entry((place, own)).or_insert_with(|| {
            self.next_interface += 1;
            self.next_interface - 1
        })
    }

    /// Notes that a file was read to its end.
    fn end(&mut self, i: usize) {
        let file = self.active.swap_remove(i);
        let counts = FileCounts {
            file: file.name,
            format: file.reader.format().name(),
            counts: Counted::Packets(file.reader.counts().clone()),
        };
        if file.reader.counts().packets == 0 {
            let message = format!("{}: no IP packets in it", counts.file);
            self.failure = Some(Error::usage(message).hint(counts));
            return;
        }
        let short = file_name(Path::new(&counts.file));
        let of_capture = file.reader.counts().doubts().into_iter();
        let doubts = file.damage.into_iter();
        let doubts = doubts.chain(of_capture.map(|d| in_file(&short, d)));
        let doubts = doubts.collect();
        drop(file.reader);
        // The digest covers the whole file, even if the reader stopped early.
        match file.source.digest() {
            Ok(sha256) => self.ended.push(Ended {
                place: file.place,
                counts,
                doubts,
                sha256,
            }),
            Err(error) => self.failure = Some(Error::failed(error)),
        }
    }

    /// Whether a file that waits begins before this time, or at it.
    fn is_due(&self, time: i64) -> bool {
        self.waiting.front().is_some_and(|w| w.begins <= time)
    }

    /// The next packet of several files, or of one that has not been read yet.
    fn earliest(&mut self, packet: &mut Packet) -> bool {
        loop {
            let mut at = 0;
            while at < self.active.len() {
                if self.active[at].head.is_some() || self.draw(at) {
                    at += 1;
                } else {
                    self.end(at);
                }
            }
            let heads = self.active.iter().enumerate();
            let heads = heads.filter_map(|(n, file)| Some((file.head.as_ref()?.0, file.place, n)));
            let Some((time, _, i)) = heads.min() else {
                return false;
            };
            if self.failure.is_some() {
                return false;
            }
            if self.is_due(time)
                && let Some(next) = self.waiting.pop_front()
            {
                if let Err(error) = self.activate(next) {
                    self.failure = Some(error);
                    return false;
                }
                continue;
            }
            self.note_overlap(time);
            let Some((_, head)) = self.active[i].head.take() else {
                return false;
            };
            *packet = head;
            return true;
        }
    }

    /// Notes that files are read at once, and not only because their packets were written in batches.
    fn note_overlap(&mut self, time: i64) {
        let long = |f: &&Active| time.saturating_sub(f.begins) > WINDOW;
        if self.active.len() < 2 || self.active.iter().filter(long).count() < 2 {
            return;
        }
        for file in &self.active {
            let name = file_name(Path::new(&file.name));
            if !self.overlap.contains(&name) {
                self.overlap.push(name);
            }
        }
    }
}

impl Packets for Merged<'_> {
    #[inline]
    fn read_into(&mut self, packet: &mut Packet) -> Result<bool, swell_capture::Error> {
        if self.failure.is_some() {
            return Ok(false);
        }
        // One file alone, whose packets need no comparison.
        if let [file] = &self.active[..]
            && file.head.is_none()
            && self.waiting.is_empty()
        {
            let more = self.advance(0, packet);
            if !more {
                self.end(0);
            }
            return Ok(more);
        }
        Ok(self.earliest(packet))
    }
}

/// The time of a file's first packet; the earliest possible if it has none, or cannot be read twice.
fn begins(path: &Path) -> Result<i64, Error> {
    let regular = std::fs::metadata(path).is_ok_and(|m| m.is_file());
    if path.as_os_str() == "-" || !regular {
        return Ok(i64::MIN);
    }
    let mut reader = Reader::open(path).map_err(Error::usage)?;
    let first = reader.next_packet().ok().flatten();
    Ok(first.map_or(i64::MIN, |p| p.time))
}

#[cfg(test)]
mod tests;
