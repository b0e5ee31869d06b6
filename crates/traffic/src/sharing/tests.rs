use super::*;
use crate::testing::{model, session};

/// Downloads without end share the link among themselves, and one has all of it.
#[test]
fn endless_downloads_share_the_link() {
    let link = [1e6, 8e6];
    for users in [1u64, 4, 10] {
        let downloads = (0..users).map(|_| {
            let mut s = session(0, Dur::ZERO, 50_000_000);
            let c = &mut s.groups[0].connections[0];
            (c.client_window, c.server_window) = (0, 0);
            s.lasted = Some(Dur::from_secs(10));
            s
        });
        let m = model(Dur::from_secs(10), downloads.collect());
        let met = Network::met(&m, &Knobs::default(), Dur::ZERO, link);
        let down = met.rates[1].unwrap().bps() as f64;
        let fair = 8e6 / users as f64;
        assert!((down / fair - 1.0).abs() < 0.15, "{users}: {down}");
    }
}

/// Who comes and goes offers the same, however fast.
#[test]
fn passing_sessions_leave_the_rest() {
    let m = model(Dur::from_secs(10), vec![session(0, Dur::ZERO, 1_000_000)]);
    let down = m.rates()[1];
    for sessions in [1.0, 3.0, 100.0] {
        let knobs = Knobs {
            sessions,
            ..Knobs::default()
        };
        let met = Network::met(&m, &knobs, Dur::ZERO, [1e7; 2]);
        let left = (1e7 - sessions * down).max(5e5);
        let found = met.rates[1].unwrap().bps() as f64;
        assert!((found - left).abs() < 2.0, "{found} {left}");
    }
}

/// Uploads side by side in one session share the link as those of several sessions do. A link that was full all the time is
/// taken for what it carried, even if more came to its queue at times. Then a copy takes as long as in the recording on that
/// link, and half as long on one of twice the rate.
#[test]
fn a_full_link_is_full_of_transfers() {
    let recording = Dur::from_secs(100);
    let mut s = session(0, Dur::ZERO, 6_000_000);
    let one = s.groups[0].connections[0].clone();
    s.groups[0].connections = vec![one; 4];
    for c in &mut s.groups[0].connections {
        (c.client_window, c.server_window) = (0, 0);
    }
    s.lasted = Some(recording);
    assert!((at_once(&s)[1] - 4.0).abs() < 1e-9);
    assert_eq!(at_once(&s)[0], 1.0);
    let mut m = model(recording, vec![s]);
    // The first second had a burst before the queue, and others now and then.
    m.load.bin = Dur::from_millis(100);
    let down = (0..1_000u64).map(|i| match i {
        0..10 => 45_000,
        _ => [36_000, 18_000, 24_000, 24_000][i as usize % 4],
    });
    m.load.bytes = [vec![0; 1_000], down.collect()];
    for (faster, seconds) in [(1.0, 100.0), (2.0, 50.0)] {
        let link = [1e9, 2.05e6 * faster];
        let network = Network::met(&m, &Knobs::default(), Dur::ZERO, link);
        let left = network.rates[1].unwrap().bps() as f64;
        assert!((left / (link[1] / 4.0) - 1.0).abs() < 0.15, "{left}");
        let course = Groups::of(&m, &m.sessions[0], &network).end;
        let stay = stays(&m, 1.0, Dur::ZERO)[0].unwrap();
        let cycle = stay.cycle(course).as_secs_f64();
        assert!((cycle / seconds - 1.0).abs() < 0.15, "{faster}: {cycle}");
    }
}

/// Where sessions waited for a recorded link that was full at times, nothing unknown made them slow: they come again once they
/// are over. Otherwise they come as often as in the recording.
#[test]
fn what_waited_for_a_full_link_waits_for_nothing_else() {
    let mut s = session(0, Dur::ZERO, 200_000);
    s.lasted = Some(Dur::from_secs(100));
    let mut m = model(Dur::from_secs(100), vec![s]);
    m.load.bin = Dur::from_millis(100);
    let course = Dur::from_secs(30);
    let cycle = |of: &Model| stays(of, 1.0, Dur::ZERO)[0].unwrap().cycle(course);
    // Two thirds of its high rate, and a third.
    for (busy, filled, waits) in [(2, true, true), (2, false, false), (1, true, false)] {
        let bytes = |i: usize| if i / 10 % 3 < busy { 100_000 } else { 0 };
        m.load.bytes = [vec![0; 1_000], (0..1_000).map(bytes).collect()];
        m.load.filled = [false, filled];
        let own = Dur::from_millis(30_100);
        assert_eq!(cycle(&m) == own, waits, "{busy} {filled}: {:?}", cycle(&m));
        assert!(cycle(&m) >= own);
        // That of the other direction does not count.
        m.load.filled = [filled, false];
        assert!(cycle(&m) > own, "{busy} {filled}");
    }
}

/// How long the recorded link was is not in the model. Over one of the same length, which is long, a copy takes as long as in
/// the recording.
#[test]
fn a_long_recorded_link_makes_no_pauses() {
    let mut s = session(0, Dur::ZERO, 200_000);
    let group = s.groups[0].clone();
    s.groups = vec![group; 20];
    let rtt = Dur::from_millis(600);
    let mut m = model(Dur::from_secs(120), vec![s]);
    m.load.bin = Dur::from_millis(100);
    m.load.bytes = [
        vec![0; 1_200],
        (0..1_200)
            .map(|i| if i % 6 < 1 { 50_000 } else { 0 })
            .collect(),
    ];
    let network = Network::met(&m, &Knobs::default(), rtt, [1e7; 2]);
    let course = Groups::of(&m, &m.sessions[0], &network).end;
    m.duration = course;
    m.sessions[0].lasted = Some(course);
    let stay = stays(&m, 1.0, rtt)[0].unwrap();
    let ratio = stay.cycle(course).as_secs_f64() / course.as_secs_f64();
    assert!((ratio - 1.0).abs() < 0.1, "{ratio}");
}
