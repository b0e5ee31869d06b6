use super::*;
use swell_base::Stream;

fn read(text: &str) -> Result<Deliveries, String> {
    Deliveries::read(text.as_bytes()).map_err(|e| e.to_string())
}

#[test]
fn several_opportunities_share_a_millisecond() {
    let trace = read("0\n0\n7\n7\n7\r\n10").unwrap();
    assert_eq!(trace.instants, [(0, 2), (7, 3), (10, 1)]);
    assert_eq!(trace.period(), Dur::from_millis(10));
    // Six packets of 1500 bytes in 10 ms.
    assert_eq!(trace.rate(), Rate::from_bps(7_200_000));
}

#[test]
fn errors_say_the_line() {
    for (text, error) in [
        ("", "the trace is empty"),
        ("0\n0\n", "the last stamp is 0"),
        ("1\n\n2\n", "line 2: `` is not a whole number"),
        ("1\n2\n-3\n", "line 3: `-3` is not a whole number"),
        ("+1\n", "line 1: `+1`"),
        ("1 2\n", "line 1: `1 2`"),
        ("1.5\n", "line 1: `1.5`"),
        ("5\n5\n4\n", "line 3: 4 comes after 5"),
        ("1\n86400001\n", "line 2: `86400001`"),
        (
            "1\n99999999999999999999999999999999999\n",
            "line 2: `9999999999999999999999999`",
        ),
        ("\u{feff}1\n", "line 1"),
    ] {
        let message = read(text).unwrap_err();
        assert!(message.starts_with(error), "{text:?}: {message}");
    }
}

#[test]
fn a_line_without_end_takes_no_memory() {
    // Two gigabytes of digits in one line, which must not be kept in memory.
    let endless = io::BufReader::new(io::repeat(b'7').take(2 << 30));
    let error = Deliveries::read(endless).unwrap_err();
    assert!(matches!(error, DeliveriesError::NoStamp { line: 1, .. }));
}

#[test]
fn a_source_that_fails_is_an_error() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("gone"))
        }
    }
    let error = Deliveries::read(io::BufReader::new(Broken)).unwrap_err();
    assert_eq!(error.to_string(), "gone");
}

/// Any input gives an error, or a trace that survives writing and reading again.
#[test]
fn random_text_is_read_or_refused() {
    let mut rng = Stream::new(3, "traces");
    let mut understood = 0;
    for _ in 0..20_000 {
        let mut next = 0;
        let mut text = Vec::new();
        for _ in 0..rng.below(8) {
            next += rng.below(40);
            text.extend(next.to_string().bytes());
            text.push(b'\n');
        }
        if rng.chance(0.5) && !text.is_empty() {
            let at = rng.below(text.len() as u64) as usize;
            text[at] = b"\n\r 0959-\xff"[rng.below(9) as usize];
        }
        let Ok(trace) = Deliveries::read(&text[..]) else {
            continue;
        };
        understood += 1;
        let lines = (trace.instants.iter()).flat_map(|&(ms, n)| (0..n).map(move |_| ms));
        let again: String = lines.map(|ms| format!("{ms}\n")).collect();
        assert_eq!(read(&again).unwrap(), trace);
        assert_eq!(again.lines().count() as u64, trace.opportunities);
        assert!(trace.period() > Dur::ZERO);
    }
    assert!(understood > 5_000, "{understood}");
}

/// Compares seeking with stepping.
#[test]
fn a_position_found_is_the_position_walked_to() {
    let mut rng = Stream::new(9, "positions");
    for _ in 0..200 {
        let mut ms = 0;
        let mut text = String::new();
        for _ in 0..=rng.below(12) {
            ms += rng.below(4);
            text += &format!("{ms}\n");
        }
        let Ok(trace) = Deliveries::read(text.as_bytes()) else {
            continue;
        };
        let trace = Arc::new(trace);
        let since = Time::from_nanos(rng.below(5_000_000));
        let phase = Dur::from_nanos(rng.below(2 * trace.period().as_nanos()));
        let walk = Position::new(&trace, phase, since);
        for half_ms in 0..100 {
            let at = since + Dur::from_micros(half_ms * 500) + Dur::from_nanos(rng.below(2));
            let (mut to, mut beyond) = (walk.clone(), walk.clone());
            let (mut found, mut found_beyond) = (walk.clone(), walk.clone());
            found.seek(at);
            found_beyond.seek_beyond(at);
            while to.instant() < at {
                to.step();
            }
            while beyond.instant() <= at {
                beyond.step();
            }
            let place = |p: &Position| (p.instant(), p.turn, p.index, p.nth, p.left);
            assert_eq!(place(&found), place(&to), "{text:?} {at}");
            assert_eq!(place(&found_beyond), place(&beyond), "{text:?} {at}");
        }
    }
}
