//! Tests of the emulator with socket pairs as devices, which need no privileges.

mod bridge;
mod stamps;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use swell_base::{Direction, DropReason, Dur, Rate, Side, Tag, Time};
use swell_path::{Discipline, LinkConfig, Loss};
use swell_tcp::Config;
use swell_workload::{Access, Greedy, GreedyConfig};
use swell_world::{Port, World};

use super::*;
use swell_host::{Checksum, IpPacket};

/// A device, and how often it was found empty.
struct Pair(UnixDatagram, Arc<AtomicU64>);

impl Nic for Pair {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
    fn read(&mut self, each: &mut dyn FnMut(IpPacket<'_>)) -> io::Result<usize> {
        let mut buffer = [0; 2048];
        match self.0.recv(&mut buffer) {
            Ok(n) => {
                each(IpPacket {
                    header: &buffer[..n.min(40)],
                    payload: &buffer[n.min(40)..n],
                    checksum: Checksum::Full,
                });
                Ok(1)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.1.fetch_add(1, Ordering::Relaxed);
                Ok(0)
            }
            Err(e) => Err(e),
        }
    }
    fn write(&mut self, packet: &[u8], _: Checksum) -> u64 {
        u64::from(self.0.send(packet).is_err())
    }
    fn flush(&mut self) -> u64 {
        0
    }
    fn lost(&self) -> u64 {
        0
    }
}

/// The socket of a host's program, and the host with its device.
fn host(right: bool, prefix: &str) -> (UnixDatagram, Host) {
    let (theirs, host, _) = watched(right, prefix);
    (theirs, host)
}

/// The same, with the number of polls that found nothing.
fn watched(right: bool, prefix: &str) -> (UnixDatagram, Host, Arc<AtomicU64>) {
    let looks = Arc::new(AtomicU64::new(0));
    let (theirs, ours) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    let port = PortConfig {
        right,
        access: Access {
            up: Some(Rate::from_bps(10_000_000_000)),
            ..Access::default()
        },
        ..PortConfig::default()
    };
    let host = Host {
        port,
        prefixes: vec![prefix.parse().unwrap()],
        nic: Box::new(Pair(ours, Arc::clone(&looks))),
    };
    (theirs, host, looks)
}

/// A world with background traffic, after half a second.
fn world() -> World {
    let link = LinkConfig {
        rate: Some(Rate::from_bps(20_000_000)),
        delay: Dur::from_millis(3),
        queue: "40packets".parse().unwrap(),
        discipline: Discipline::FqCoDel(Default::default()),
        loss: Loss::Independent { p: 0.01 },
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], 5);
    world.meter(Dur::from_millis(1), Dur::from_millis(100));
    let greedy = GreedyConfig {
        connections: 4,
        from: Side::Left,
        start: Dur::ZERO,
        stagger: Dur::from_millis(50),
        sender: Access::default(),
        receiver: Access::default(),
        ..GreedyConfig::default()
    };
    let machine = Box::new(Greedy::new(greedy));
    world.add(machine, Tag::Background, Arc::new(Config::linux()));
    world.advance(Time::from_secs_f64(0.5));
    world
}

/// An IPv4 UDP packet of this size that carries a number.
fn packet(from: u8, to: u8, size: usize, number: u32) -> Vec<u8> {
    let mut p = vec![0; size];
    p[0] = 0x45;
    p[1] = 2;
    p[9] = 17;
    p[12..20].copy_from_slice(&[10, 0, from, 1, 10, 0, to, 1]);
    p[20..24].copy_from_slice(&[0, 9, 1, (number % 7) as u8]);
    p[28..32].copy_from_slice(&number.to_be_bytes());
    p
}

fn received(socket: &UnixDatagram, into: &mut Vec<u32>) {
    let mut buffer = [0; 2048];
    while let Ok(n) = socket.recv(&mut buffer) {
        assert!(n >= 32);
        into.push(u32::from_be_bytes([
            buffer[28], buffer[29], buffer[30], buffer[31],
        ]));
    }
}

#[test]
fn a_recorded_run_is_repeated_in_virtual_time_to_the_nanosecond() {
    let coalesced = Pace::Coalesced(Dur::from_micros(300));
    [Pace::Prompt, Pace::Precise, coalesced]
        .into_iter()
        .for_each(recorded_and_repeated);
}

fn recorded_and_repeated(pace: Pace) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let (client, a) = host(false, "10.0.1.0/24");
    let (server, b) = host(true, "10.0.2.0/24");
    let control = Arc::new(Control::default());
    let options = Options {
        journal: Some(path.clone()),
        pace,
        control: Some(Arc::clone(&control)),
        ..Options::default()
    };
    let running = Emulation::new(world(), vec![a, b], options)
        .unwrap()
        .start()
        .unwrap();
    let begun = Instant::now();
    let mut settings = settings().into_iter();
    let (mut there, mut back, mut sent) = (Vec::new(), Vec::new(), 0u32);
    while begun.elapsed() < Duration::from_millis(700) {
        for burst in 0..3 {
            let size = 40 + (sent as usize * 37 + burst * 400) % 1400;
            client.send(&packet(1, 2, size, sent)).unwrap();
            server.send(&packet(2, 1, size, sent)).unwrap();
            sent += 1;
        }
        if sent.is_multiple_of(99)
            && let Some((direction, setting)) = settings.next()
        {
            control.set(direction, setting);
        }
        std::thread::sleep(Duration::from_millis(1));
        received(&server, &mut there);
        received(&client, &mut back);
    }
    // Not an IP packet.
    client.send(&[7; 50]).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let ended = running.stop().unwrap();
    received(&server, &mut there);
    received(&client, &mut back);

    let c = ended.counts;
    assert_eq!((c.unroutable, c.strange, c.refused), (0, 1, 0));
    assert!(c.set > 0 && control.done());
    assert_eq!(c.entered, 2 * u64::from(sent));
    assert_eq!(c.left, (there.len() + back.len()) as u64);
    assert_eq!(c.entered, c.left + c.dropped + ended.world.inside());
    assert!(c.dropped > 0 && c.left > 100, "{c:?}");

    let bytes = std::fs::read(&path).unwrap();
    let recorded = read_journal(&mut &bytes[..], ended.at).unwrap();
    assert!(recorded.whole);
    let entries = recorded.entries;
    let mut again = world();
    let repeated = replay(&mut again, &entries);
    assert_eq!(first_difference(&entries, &repeated), None);
    let departures = |e: &[Entry]| {
        e.iter()
            .filter(|e| matches!(e, Entry::Departure { .. }))
            .count()
    };
    assert_eq!(departures(&repeated), c.left as usize);

    // The comparison can also fail: here with a world of another loss pattern.
    let mut other = world_of_another_loss();
    assert!(first_difference(&entries, &replay(&mut other, &entries)).is_some());

    // A killed run leaves a truncated journal. Wherever it is cut, the reliable part is repeated exactly.
    let mut longest = 0;
    for cut in (16..bytes.len()).step_by(bytes.len() / 40 + 1) {
        let part = read_journal(&mut &bytes[..cut], ended.at).unwrap();
        assert!(!part.whole);
        let repetition = replay(&mut world(), &part.entries);
        assert_eq!(first_difference(&part.entries, &repetition), None, "{cut}");
        longest = longest.max(departures(&part.entries));
    }
    // How much is reliable depends on how the machine was interrupted.
    assert!(longest > 0);
}

/// The wire lost a packet before the instant of the cut, and the link decided on it afterwards.
#[test]
fn what_became_known_after_a_cut_is_no_difference() {
    let arrival = |ms| Entry::Arrival {
        at: Time::ZERO + Dur::from_millis(ms),
        from: Port(0),
        to: Port(1),
        bucket: 0,
        size: 100,
        ecn: 0,
    };
    let lost = Entry::Drop {
        at: Time::ZERO + Dur::from_millis(8),
        number: 0,
        reason: DropReason::Loss,
    };
    let end = |ms| Entry::End {
        at: Time::ZERO + Dur::from_millis(ms),
    };
    let (first, last) = (arrival(1), arrival(10));
    let repeated = [first, last, end(10)];
    assert_eq!(
        first_difference(&[first, last, lost, end(10)], &repeated),
        None
    );
    // It was known before the cut, or the journal is whole.
    let before = [first, lost, last, end(10)];
    let difference = Some([Some(lost), None]);
    assert_eq!(first_difference(&before, &repeated), difference);
    let whole = [first, last, lost, end(11)];
    assert_eq!(first_difference(&whole, &repeated), difference);
    // The repetition must not invent one.
    let invented = first_difference(&repeated, &[first, last, lost, end(10)]);
    assert_eq!(invented, Some([None, Some(lost)]));
}

/// Settings that are changed during a run.
fn settings() -> [(Direction, LinkSetting); 4] {
    let slower = LinkSetting {
        rate: Some(Rate::from_bps(3_000_000)),
        ..LinkSetting::default()
    };
    let nearer = LinkSetting {
        delay: Some(Dur::from_micros(200)),
        queue: Some("10packets".parse().unwrap()),
        ..LinkSetting::default()
    };
    let lossy = LinkSetting {
        loss: Some(Loss::GilbertElliott {
            to_bad: 0.1,
            to_good: 0.4,
            loss_bad: 0.9,
            loss_good: 0.01,
        }),
        ..LinkSetting::default()
    };
    let faster = LinkSetting {
        rate: Some(Rate::from_bps(30_000_000)),
        ..nearer
    };
    [
        (Direction::Up, slower),
        (Direction::Down, nearer),
        (Direction::Up, lossy),
        (Direction::Down, faster),
    ]
}

fn world_of_another_loss() -> World {
    let link = LinkConfig {
        rate: Some(Rate::from_bps(20_000_000)),
        delay: Dur::from_millis(3),
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], 6);
    world.advance(Time::from_secs_f64(0.5));
    world
}

#[test]
fn coalesced_packets_are_looked_for_at_most_twice_in_their_time() {
    let (one, a, looks) = watched(false, "10.0.1.0/24");
    let (_two, b) = host(true, "10.0.2.0/24");
    let options = Options {
        pace: Pace::Coalesced(Dur::from_millis(1)),
        ..Options::default()
    };
    // A sender that finds the queue full blocks.
    one.set_nonblocking(false).unwrap();
    let begun = Instant::now();
    let running = Emulation::new(world(), vec![a, b], options)
        .unwrap()
        .start()
        .unwrap();
    for number in 0..3000 {
        one.send(&packet(1, 2, 100, number)).unwrap();
        std::thread::sleep(Duration::from_micros(20));
    }
    let ended = running.stop().unwrap();
    // Per millisecond: a poll that finds packets and one that finds none; and the wait for the first packet.
    let most = 2 * begun.elapsed().as_millis() as u64 + 2;
    let looks = looks.load(Ordering::Relaxed);
    assert!(ended.counts.entered > 1000, "{:?}", ended.counts);
    assert!(looks <= most, "{looks} looks, at most {most}");
}

#[test]
fn who_asks_for_an_address_that_nobody_has_is_told() {
    let (one, a) = host(false, "10.0.1.0/24");
    one.set_nonblocking(false).unwrap();
    let running = Emulation::new(world(), vec![a], Options::default()).unwrap();
    let running = running.start().unwrap();
    one.send(&packet(1, 9, 100, 5)).unwrap();
    let mut buffer = [0; 2048];
    let n = one.recv(&mut buffer).unwrap();
    let told = ip::Header::of(&buffer[..n]).unwrap();
    assert_eq!(
        (told.protocol, told.destination.to_string().as_str()),
        (1, "10.0.1.1")
    );
    assert_eq!(buffer[20], 3);
    assert_eq!(buffer[28..n], packet(1, 9, 100, 5));
    // A multicast group has no member, and the sender gets no error.
    let mut group = packet(1, 9, 60, 6);
    group[16..20].copy_from_slice(&[224, 0, 0, 251]);
    one.send(&group).unwrap();
    // Only the first of these is a program's own: the others ask for names (mDNS) and for neighbours.
    group[22..24].copy_from_slice(&5353u16.to_be_bytes());
    one.send(&group).unwrap();
    group[9] = 58;
    one.send(&group).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let counts = running.stop().unwrap().counts;
    assert_eq!(
        (counts.unroutable, counts.multicast, counts.entered),
        (1, 3, 0)
    );
    assert_eq!(counts.groups, 1);
}

#[test]
fn neighbours_reach_each_other_without_the_bottleneck_and_time_ends_by_itself() {
    let (one, a) = host(false, "10.0.1.0/24");
    let (two, b) = host(false, "10.0.2.0/24");
    let options = Options {
        until: Some(Time::from_secs_f64(0.6)),
        pace: Pace::Precise,
        ..Options::default()
    };
    let running = Emulation::new(world(), vec![a, b], options)
        .unwrap()
        .start()
        .unwrap();
    one.send(&packet(1, 2, 100, 77)).unwrap();
    let begun = Instant::now();
    while !running.is_over() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    // A program that is late and sends after the end gets no answer, but no error either.
    one.send(&packet(1, 2, 100, 78)).unwrap();
    let ended = running.stop().unwrap();
    assert_eq!(ended.at, Time::from_secs_f64(0.6));
    let mut seen = Vec::new();
    received(&two, &mut seen);
    assert_eq!(
        (seen, ended.counts.local, ended.counts.entered),
        (vec![77], 1, 0)
    );
}

#[test]
fn stretched_time_goes_slower() {
    let (_one, a) = host(false, "10.0.1.0/24");
    let options = Options {
        stretch: 20.0,
        ..Options::default()
    };
    let begun = Instant::now();
    let running = Emulation::new(world(), vec![a], options)
        .unwrap()
        .start()
        .unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let ended = running.stop().unwrap();
    let (inside, outside) = (ended.at.as_secs_f64() - 0.5, begun.elapsed().as_secs_f64());
    assert!(
        inside > 0.0 && inside <= outside / 20.0,
        "{inside} in {outside}"
    );
}

#[test]
fn a_broken_journal_is_refused_with_the_place() {
    let mut file = Vec::new();
    let mut journal = Journal::new(&mut file).unwrap();
    let access = Access {
        delay: Dur::from_millis(7),
        up: Some(Rate::from_bps(3)),
        loss_down: 0.25,
        ..Access::default()
    };
    let port = |right| Entry::Port {
        at: Time::from_nanos(2),
        config: PortConfig {
            right,
            access,
            ..PortConfig::default()
        },
        program: !right,
    };
    let arrival = Entry::Arrival {
        at: Time::from_nanos(5),
        from: swell_world::Port(0),
        to: swell_world::Port(1),
        bucket: 3,
        size: 100,
        ecn: 1,
    };
    let end = Entry::End {
        at: Time::from_nanos(9),
    };
    let [(_, slower), (_, nearer), (direction, lossy), _] = settings();
    let set = |setting| Entry::Set {
        at: Time::from_nanos(6),
        link: 0,
        direction,
        setting,
    };
    let (a, b) = (port(false), port(true));
    let entries = [a, b, arrival, set(slower), set(nearer), set(lossy), end];
    entries.iter().for_each(|e| journal.add(e).unwrap());
    journal.finish().unwrap();
    let day = Time::from_secs_f64(86_400.0);
    let read = |bytes: &[u8]| read_journal(&mut &*bytes, day);
    let whole = read(&file).unwrap();
    assert_eq!((&whole.entries[..], whole.whole), (&entries[..], true));
    for cut in 0..file.len() {
        let part = read(&file[..cut]);
        assert_eq!(part.is_ok_and(|p| !p.whole), cut >= 16, "{cut}");
    }
    let mut rng = swell_base::Stream::new(3, "journal");
    for _ in 0..20_000 {
        let mut broken = file.clone();
        let i = rng.below(broken.len() as u64) as usize;
        broken[i] = rng.below(256) as u8;
        // Replay must not panic on a damaged journal.
        if let Ok(damaged) = read(&broken) {
            let link = LinkConfig::default();
            let mut world = World::new(&[link.clone(), link], 1);
            replay(&mut world, &damaged.entries);
        }
    }
    let with = |extra: Entry| {
        let mut longer = Vec::new();
        let mut sink = Journal::new(&mut longer).unwrap();
        entries.iter().for_each(|e| sink.add(e).unwrap());
        sink.add(&extra).unwrap();
        read(&longer).unwrap_err().to_string()
    };
    assert_eq!(with(end), "byte 424 of the journal: an entry after the end");
    let mut later = Vec::new();
    let mut sink = Journal::new(&mut later).unwrap();
    let at = Time::from_secs_f64(61.0);
    sink.add(&Entry::End { at }).unwrap();
    let late = read_journal(&mut &later[..], Time::ZERO).unwrap_err();
    assert_eq!(
        late.to_string(),
        "byte 16 of the journal: a time after the end of the run"
    );
    file[16] = 9;
    let error = read_journal(&mut &file[..], day).unwrap_err();
    assert_eq!(
        error.to_string(),
        "byte 16 of the journal: an unknown kind of record"
    );
}
