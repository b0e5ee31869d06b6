//! Which packets were lost: those that went into a router and did not come out.

use std::hash::{DefaultHasher, Hasher};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use swell_host::sys::batch::{Batch, FRONT};
use swell_host::sys::packet_drops;

/// The port that packets of the generator are sent to, that of the discard service (RFC 863), which never answers.
pub(super) const PORT: u16 = 9;

/// How long a reader sleeps when there is nothing to read: long compared to a packet, short compared to the time that
/// fills its socket's buffer.
const NAP: Duration = Duration::from_millis(2);

/// Most marks of a run: 512 MiB.
const MOST: usize = 1 << 26;

/// The mark that [`mark`] or [`number`] gives to a packet.
pub(super) type Mark = fn(&[u8]) -> Option<u64>;

/// A mark of an IPv4 packet that is the same on both sides of a router: a hash of its header except for time to live and
/// checksum, and of ports and sequence number. A hash is short, because a run has many packets: among 10^8 of them, two
/// that differ have the same one with a probability of 0.03 %. `None` for other protocols and short fragments.
pub(super) fn mark(front: &[u8]) -> Option<u64> {
    let mut kept = *front.first_chunk::<FRONT>()?;
    if kept[0] != 0x45 {
        return None;
    }
    kept[8] = 0;
    kept[10..12].fill(0);
    let mut hasher = DefaultHasher::new();
    hasher.write(&kept);
    Some(hasher.finish())
}

/// The number of a packet of the generator. `None` for others.
pub(super) fn number(front: &[u8]) -> Option<u64> {
    let front = front.first_chunk::<FRONT>()?;
    let is_udp = front[0] == 0x45 && front[9] == 17;
    let own = is_udp && front[22..24] == PORT.to_be_bytes();
    own.then(|| front[28..].first_chunk().map(|n| u64::from_be_bytes(*n)))?
}

/// The marks of the packets that crossed a device, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    all: Vec<u64>,
    /// Packets that are not among these: a tap's buffer was full, or they were too many.
    pub missed: u64,
}

impl Marks {
    pub fn add(&mut self, mark: u64) {
        self.add_within(MOST, mark);
    }

    fn add_within(&mut self, most: usize, mark: u64) {
        if self.all.len() < most {
            self.all.push(mark);
        } else {
            self.missed += 1;
        }
    }

    /// Number of packets.
    pub fn count(&self) -> u64 {
        self.all.len() as u64 + self.missed
    }

    /// For each packet, whether it was lost before it came out. Packets that came out without having gone in, such as
    /// the router's own, are ignored.
    pub fn lost(&self, out: &Marks) -> Vec<bool> {
        let sorted = |marks: &Marks| {
            let mut places: Vec<u32> = (0..marks.all.len() as u32).collect();
            // Equal marks stay in the order in which they crossed.
            places.sort_by_key(|&i| marks.all[i as usize]);
            places
        };
        let came_out = sorted(out);
        let mut came_out = came_out.iter().map(|&i| out.all[i as usize]).peekable();
        let mut lost = vec![true; self.all.len()];
        for place in sorted(self) {
            let mark = self.all[place as usize];
            while came_out.next_if(|m| *m < mark).is_some() {}
            lost[place as usize] = came_out.next_if_eq(&mark).is_none();
        }
        lost
    }
}

/// Reads a tap until `stop` is set, and then the packets that are left. Marks those that its host sent, or received.
pub(super) fn read(
    tap: &OwnedFd,
    sent: bool,
    mark: Mark,
    stop: &AtomicBool,
) -> rustix::io::Result<Marks> {
    let (mut marks, mut batch) = (Marks::default(), Batch::default());
    loop {
        // The flag is read before the socket, so that all packets from before the stop are read.
        let last = stop.load(Ordering::Acquire);
        match batch.receive(tap.as_fd()) {
            Ok(_) => {
                let own = batch.packets().filter(|(_, outgoing)| *outgoing == sent);
                own.filter_map(|(front, _)| mark(front))
                    .for_each(|m| marks.add(m));
            }
            Err(Errno::AGAIN) if last => break,
            Err(Errno::AGAIN) => thread::sleep(NAP),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    marks.missed += packet_drops(tap.as_fd()).unwrap_or(0);
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(id: u8, ttl: u8) -> [u8; FRONT] {
        let mut packet = [0; FRONT];
        packet[0] = 0x45;
        packet[5] = id;
        packet[8] = ttl;
        // The checksum is not part of the mark.
        packet[10] = ttl.wrapping_mul(77);
        packet
    }

    fn marks(ids: &[u8], ttl: u8) -> Marks {
        let mut marks = Marks::default();
        ids.iter()
            .filter_map(|&id| mark(&packet(id, ttl)))
            .for_each(|m| marks.add(m));
        marks
    }

    #[test]
    fn what_did_not_come_out_is_lost() {
        let into = marks(&[1, 2, 3, 4, 5, 6], 64);
        let out = marks(&[1, 4, 5], 63);
        assert_eq!(into.lost(&out), [false, true, true, false, false, true]);
        // A packet of the router itself, and one out of order.
        let others = marks(&[1, 4, 5, 99, 3], 63);
        assert_eq!(into.lost(&others), [false, true, false, false, false, true]);
        assert_eq!(into.lost(&Marks::default()), [true; 6]);
    }

    #[test]
    fn marks_are_bounded_and_the_rest_is_counted() {
        let mut marks = Marks::default();
        (0..6).for_each(|n| marks.add_within(4, n));
        assert_eq!((marks.all.len(), marks.missed, marks.count()), (4, 2, 6));
    }

    #[test]
    fn other_packets_have_no_mark() {
        let mut six = packet(1, 64);
        six[0] = 0x60;
        assert_eq!(mark(&six), None);
        assert_eq!(mark(&packet(1, 64)[..20]), None);
        let mut numbered = packet(1, 64);
        numbered[9] = 17;
        numbered[23] = 9;
        numbered[34] = 1;
        assert_eq!(number(&numbered), Some(256));
        for (at, other) in [(0, 0x46), (9, 6), (23, 53)] {
            let mut packet = numbered;
            packet[at] = other;
            assert_eq!(number(&packet), None);
        }
    }
}
