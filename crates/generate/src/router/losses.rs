//! Which packets were lost, according to packet numbers or to a comparison of input and output.

use std::hash::{DefaultHasher, Hasher};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

use swell_host::sys::batch::{Batch, FRONT};
use swell_host::sys::packet_drops;

/// How long a reader sleeps when there is nothing to read: long compared to a packet, short compared to the time that
/// fills its socket's buffer.
const NAP: Duration = Duration::from_millis(2);

/// Reads packets until `stop` is set, and then those that are left.
pub(super) fn read(
    socket: &OwnedFd,
    stop: &AtomicBool,
    mut each: impl FnMut(&[u8], bool),
) -> rustix::io::Result<()> {
    let mut batch = Batch::default();
    loop {
        // The flag is read before the socket, so that all packets from before the stop are read.
        let last = stop.load(Ordering::Acquire);
        match batch.receive(socket.as_fd()) {
            Ok(_) => batch.packets().for_each(|(front, out)| each(front, out)),
            Err(Errno::AGAIN) if last => return Ok(()),
            Err(Errno::AGAIN) => thread::sleep(NAP),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Packet numbers that arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers(Vec<bool>);

impl Numbers {
    /// Records a datagram, which begins with its number.
    pub fn arrived(&mut self, front: &[u8]) {
        let Some(number) = front.first_chunk() else {
            return;
        };
        let Ok(number) = usize::try_from(u64::from_be_bytes(*number)) else {
            return;
        };
        // Numbers in foreign packets could require unlimited memory.
        if number >= MOST {
            return;
        }
        if number >= self.0.len() {
            self.0.resize(number + 1, false);
        }
        self.0[number] = true;
    }

    /// For each of the first `numbers` packets, whether it was lost. Those with the numbers `refused`, which ascend, were
    /// never sent and are left out.
    pub fn lost(&self, numbers: u64, refused: &[u64]) -> Vec<bool> {
        let numbers = numbers.min(MOST as u64);
        let arrived = |n: u64| self.0.get(n as usize).copied().unwrap_or(false);
        let sent = (0..numbers).filter(|n| refused.binary_search(n).is_err());
        sent.map(|n| !arrived(n)).collect()
    }
}

/// Most packet numbers of a run: some minutes at the highest possible rate.
const MOST: usize = 1 << 28;

/// Identifies a packet on both sides of a router: its IPv4 header except for time to live and checksum,
/// followed by ports and sequence number.
/// Only a hash of it is kept, because a run has many packets: among 10^8 of them, two that differ have the same one with
/// a probability of 0.03 %.
type Mark = u64;

/// Most marks of a run: 512 MiB.
const MOST_MARKS: usize = 1 << 26;

/// The marks of the IPv4 packets that crossed a device, in order.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    all: Vec<Mark>,
    most: usize,
    left_out: u64,
}

impl Default for Marks {
    fn default() -> Marks {
        Marks::of_at_most(MOST_MARKS)
    }
}

impl Marks {
    /// Keeps the marks of the first `most` packets.
    fn of_at_most(most: usize) -> Marks {
        Marks {
            all: Vec::new(),
            most,
            left_out: 0,
        }
    }

    /// Number of packets beyond those that are kept.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Records a packet. Packets of other protocols, and fragments of headers, are ignored.
    pub fn crossed(&mut self, front: &[u8]) {
        let Some(mut mark) = front.first_chunk::<FRONT>().copied() else {
            return;
        };
        if mark[0] != 0x45 {
            return;
        }
        mark[8] = 0;
        mark[10..12].fill(0);
        if self.all.len() >= self.most {
            self.left_out += 1;
            return;
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(&mark);
        self.all.push(hasher.finish());
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

/// Packets dropped because a tap's buffer was full.
pub(super) fn overflown(tap: &OwnedFd) -> u64 {
    packet_drops(tap.as_fd()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_did_not_arrive_are_lost() {
        let mut numbers = Numbers::default();
        for n in [0u64, 1, 4, u64::MAX] {
            numbers.arrived(&n.to_be_bytes());
        }
        numbers.arrived(b"short");
        assert_eq!(
            numbers.lost(6, &[]),
            [false, false, true, true, false, true]
        );
        // What the kernel refused was not lost on the way.
        assert_eq!(numbers.lost(6, &[2, 5]), [false, false, true, false]);
        assert_eq!(Numbers::default().lost(2, &[]), [true, true]);
    }

    fn packet(id: u8, ttl: u8) -> [u8; FRONT] {
        let mut packet = [0; FRONT];
        packet[0] = 0x45;
        packet[5] = id;
        packet[8] = ttl;
        // The checksum is not part of the mark.
        packet[10] = ttl.wrapping_mul(77);
        packet
    }

    #[test]
    fn what_did_not_come_out_is_lost() {
        let (mut into, mut out) = (Marks::default(), Marks::default());
        (1..=6).for_each(|id| into.crossed(&packet(id, 64)));
        [1, 4, 5]
            .iter()
            .for_each(|&id| out.crossed(&packet(id, 63)));
        assert_eq!(into.lost(&out), [false, true, true, false, false, true]);
        // A packet of the router itself, and one out of order.
        out.crossed(&packet(99, 63));
        out.crossed(&packet(3, 63));
        assert_eq!(into.lost(&out), [false, true, false, false, false, true]);
        // Another protocol, and a packet that is too short.
        let mut six = packet(1, 64);
        six[0] = 0x60;
        into.crossed(&six);
        into.crossed(&packet(1, 64)[..20]);
        assert_eq!(into.all.len(), 6);
    }

    #[test]
    fn marks_are_bounded_and_the_rest_is_counted() {
        let mut marks = Marks::of_at_most(4);
        (1..=6).for_each(|id| marks.crossed(&packet(id, 64)));
        assert_eq!((marks.all.len(), marks.left_out()), (4, 2));
        assert_eq!(Marks::default().most, MOST_MARKS);
    }
}
