//! Waiting in tests.

use std::time::{Duration, Instant};

/// Waits for something that must happen. It only gives up after a time that means a hang.
#[track_caller]
pub(crate) fn until(mut what: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it never happened"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}
