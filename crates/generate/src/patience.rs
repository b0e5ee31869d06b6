//! For tests: waiting for what must happen.

use std::time::{Duration, Instant};

/// Waits for something that must happen; nothing but a hang ends it.
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
