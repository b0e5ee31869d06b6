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
