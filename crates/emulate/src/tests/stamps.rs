//! Tests of packets that the kernel stamped but that were read late.

use std::collections::VecDeque;

use super::*;
use swell_host::clock::epoch;

/// A device that was not read for a while. Packets have arrival times in milliseconds after `begun`.
struct Late {
    fd: UnixDatagram,
    begun: Option<u64>,
    waiting: VecDeque<(u64, Vec<u8>)>,
    stamp: Option<u64>,
}

impl Nic for Late {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
    fn read(&mut self, each: &mut dyn FnMut(IpPacket<'_>)) -> io::Result<usize> {
        let begun = *self.begun.get_or_insert_with(|| {
            // The loop was stalled: the waiting packets arrived during the stall.
            let now = epoch();
            std::thread::sleep(Duration::from_millis(400));
            now
        });
        let Some((at, packet)) = self.waiting.pop_front() else {
            return Ok(0);
        };
        self.stamp = Some(begun + at * 1_000_000);
        each(IpPacket {
            header: &packet,
            payload: &[],
            checksum: Checksum::Full,
        });
        Ok(1)
    }
    fn write(&mut self, packet: &[u8], _: Checksum) -> u64 {
        u64::from(self.fd.send(packet).is_err())
    }
    fn flush(&mut self) -> u64 {
        0
    }
    fn lost(&self) -> u64 {
        0
    }
    fn stamp(&self) -> Option<u64> {
        self.stamp
    }
    fn stamps(&self) -> bool {
        true
    }
}

#[test]
fn packets_that_were_read_late_come_when_the_kernel_says_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let side = |right: bool, own: u8, other: u8, first: u64| {
        let (end, fd) = UnixDatagram::pair().unwrap();
        // More packets than one batch, so that the last packets of one side are read after those of the other side.
        let waiting = (0..50).map(|k| {
            let packet = packet(own, other, 100, k as u32);
            (first + 6 * k, packet)
        });
        let nic = Late {
            fd,
            begun: None,
            waiting: waiting.collect(),
            stamp: None,
        };
        let host = Host {
            port: PortConfig {
                right,
                ..PortConfig::default()
            },
            prefixes: vec![format!("10.0.{own}.0/24").parse().unwrap()],
            nic: Box::new(nic),
        };
        (end, host)
    };
    // The right side's test clock begins 400 ms later, after the wait for the left one.
    let ((_client, a), (_server, b)) = (side(false, 1, 2, 0), side(true, 2, 1, 0));
    let options = Options {
        journal: Some(path.clone()),
        ..Options::default()
    };
    let quiet = World::new(&[LinkConfig::default(), LinkConfig::default()], 1);
    let running = Emulation::new(quiet, vec![a, b], options)
        .unwrap()
        .start()
        .unwrap();
    while running.snapshot().at < Time::from_secs_f64(1.2) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = running.stop().unwrap();
    assert_eq!(ended.counts.entered, 100);
    let bytes = std::fs::read(&path).unwrap();
    let entries = read_journal(&mut &bytes[..], ended.at).unwrap().entries;
    let arrivals: Vec<(Time, u32)> = entries
        .iter()
        .filter_map(|e| match e {
            Entry::Arrival { at, from, .. } => Some((*at, from.0)),
            _ => None,
        })
        .collect();
    assert!(arrivals.is_sorted_by_key(|arrival| arrival.0));
    for port in 0..2 {
        let of = arrivals.iter().filter(|arrival| arrival.1 == port);
        let of: Vec<Time> = of.map(|arrival| arrival.0).collect();
        assert_eq!(of.len(), 50);
        // Spread over 294 ms as they arrived. Stamped when read, they would all have one arrival time.
        let span = of[49].since(of[0]).as_secs_f64();
        assert!(span > 0.2, "port {port}: {span} s");
    }
}

/// What a [`Tap`] does at its next read.
#[derive(Clone, Copy)]
enum Next {
    /// It has this packet, which arrived at this time since the epoch if that is known.
    Packet(u32, Option<u64>),
    /// The same for a packet of unknown time, after the loop has lost its processor for so many milliseconds.
    Stalled(u32, u64),
    /// It has nothing. Then a packet arrives and the loop loses its processor for so many milliseconds.
    Preempted(u32, u64),
    /// It has what is left over from `Preempted`.
    Left,
}

/// A device with kernel time stamps whose reads a test decides. It is readable when the test sends a byte.
struct Tap {
    fd: UnixDatagram,
    next: std::sync::mpsc::Receiver<Next>,
    left: Option<(u32, u64)>,
    stamp: Option<u64>,
}

impl Nic for Tap {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
    fn read(&mut self, each: &mut dyn FnMut(IpPacket<'_>)) -> io::Result<usize> {
        let _ = self.fd.recv(&mut [0; 8]);
        let (number, stamp) = match self.next.try_recv() {
            Ok(Next::Packet(number, stamp)) => (number, stamp),
            Ok(Next::Preempted(number, millis)) => {
                self.left = Some((number, epoch()));
                std::thread::sleep(Duration::from_millis(millis));
                return Ok(0);
            }
            Ok(Next::Stalled(number, millis)) => {
                std::thread::sleep(Duration::from_millis(millis));
                (number, None)
            }
            Ok(Next::Left) if self.left.is_some() => {
                let (number, stamp) = self.left.take().unwrap();
                (number, Some(stamp))
            }
            _ => return Ok(0),
        };
        self.stamp = stamp;
        each(IpPacket {
            header: &packet(1, 2, 100, number),
            payload: &[],
            checksum: Checksum::Full,
        });
        Ok(1)
    }
    fn write(&mut self, _: &[u8], _: Checksum) -> u64 {
        0
    }
    fn flush(&mut self) -> u64 {
        0
    }
    fn lost(&self) -> u64 {
        0
    }
    fn stamp(&self) -> Option<u64> {
        self.stamp
    }
    fn stamps(&self) -> bool {
        true
    }
}

/// Runs a world over such a device, on the left, while `test` decides its reads. Returns the result and the times at which
/// packets entered.
fn tapped(world: World, test: impl Fn(&dyn Fn(Next))) -> (EmulationResult, Vec<Time>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let (order, next) = std::sync::mpsc::channel();
    let ((theirs, fd), (_server, right)) =
        (UnixDatagram::pair().unwrap(), host(true, "10.0.2.0/24"));
    let (silent, other) = UnixDatagram::pair().unwrap();
    fd.set_nonblocking(true).unwrap();
    silent.set_nonblocking(true).unwrap();
    let nic = Tap {
        fd,
        next,
        left: None,
        stamp: None,
    };
    let right = Host {
        nic: Box::new(Tap {
            fd: silent,
            next: std::sync::mpsc::channel().1,
            left: None,
            stamp: None,
        }),
        ..right
    };
    let left = Host {
        port: PortConfig::default(),
        prefixes: vec!["10.0.1.0/24".parse().unwrap()],
        nic: Box::new(nic),
    };
    let options = Options {
        journal: Some(path.clone()),
        crossing: Dur::from_millis(3),
        ..Options::default()
    };
    let running = Emulation::new(world, vec![left, right], options)
        .unwrap()
        .start()
        .unwrap();
    std::thread::sleep(Duration::from_millis(30));
    test(&|what| {
        order.send(what).unwrap();
        theirs.send(&[0]).unwrap();
        std::thread::sleep(Duration::from_millis(60));
    });
    let ended = running.stop().unwrap();
    drop(other);
    let bytes = std::fs::read(&path).unwrap();
    let entries = read_journal(&mut &bytes[..], ended.at).unwrap().entries;
    let arrivals = entries.iter().filter_map(|e| match e {
        Entry::Arrival { at, .. } => Some(*at),
        _ => None,
    });
    (ended, arrivals.collect())
}

/// A world that delays packets, and loses them with this probability.
fn delay_only(p: f64) -> World {
    let link = LinkConfig {
        loss: Loss::Independent { p },
        delay: Dur::from_millis(3),
        ..LinkConfig::default()
    };
    World::new(&[link.clone(), link], 1)
}

/// A packet that arrives after its device was read, and before the loop goes on, enters when it arrived.
#[test]
fn a_preemption_after_a_read_delays_no_packet() {
    let stamps = std::cell::Cell::new([0; 2]);
    let (_, arrivals) = tapped(delay_only(0.0), |next| {
        let first = epoch();
        next(Next::Packet(1, Some(first)));
        let second = epoch();
        next(Next::Preempted(2, 150));
        // It is there to be read before the loop goes on.
        next(Next::Left);
        std::thread::sleep(Duration::from_millis(100));
        stamps.set([first, second]);
    });
    let [first, second] = stamps.get();
    assert_eq!(arrivals.len(), 2);
    let apart = arrivals[1].since(arrivals[0]).as_secs_f64();
    let sent = (second - first) as f64 * 1e-9;
    // The device was woken between `second` and its stamp.
    assert!(
        (sent - 1e-4..sent + 0.03).contains(&apart),
        "{apart} {sent}"
    );
}

/// How late the only request is.
fn lateness(ended: EmulationResult) -> Dur {
    let at = ended.at;
    let all = ended.tracker.finish(at).datagrams;
    all[0].exchanges[0].late
}

/// A packet that is shown only after the world's time has passed its time of arrival is late by as much. So is one of
/// unknown time, by as long as its device was not found empty.
#[test]
fn a_packet_that_the_world_has_passed_is_late() {
    // The world's time stands where the loop last turned. A packet that enters there has the 3 ms of the link left to make
    // up for what came after.
    let least = Dur::from_millis(40 - 3);
    for known in [true, false] {
        let (ended, arrivals) = tapped(delay_only(0.0), |next| match known {
            true => {
                let arrived = epoch();
                std::thread::sleep(Duration::from_millis(40));
                next(Next::Packet(1, Some(arrived)));
            }
            false => next(Next::Stalled(1, 40)),
        });
        assert_eq!(arrivals.len(), 1);
        assert!(ended.late.max >= least, "{known}: {:?}", ended.late.max);
        assert!(lateness(ended) >= least, "{known}");
    }
}

/// If such a packet is dropped, its lateness may be the cause: it might have been spared, and another one dropped.
#[test]
fn a_loss_that_lateness_may_have_moved_counts_as_a_retransmission() {
    let sent = |p: f64| {
        let (ended, arrivals) = tapped(delay_only(p), |next| {
            let arrived = epoch();
            std::thread::sleep(Duration::from_millis(10));
            next(Next::Packet(1, Some(epoch())));
            // Another packet of the same flow, which had come before.
            next(Next::Packet(8, Some(arrived)));
        });
        assert_eq!(arrivals.len(), 2);
        lateness(ended)
    };
    let timeout = Dur::from_millis(200);
    assert!(sent(1.0) > timeout);
    assert!(sent(0.0) < timeout);
}
