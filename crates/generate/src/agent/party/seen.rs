//! What the controller knows about an agent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::super::api::StatisticsView;
use super::super::clock::Clock;

/// Time of the last call by the controller's user. If the calls stop, traffic must not be kept going.
#[derive(Clone)]
pub(in crate::agent) struct Attention(Arc<Mutex<Instant>>);

impl Attention {
    pub fn new() -> Attention {
        Attention(Arc::new(Mutex::new(Instant::now())))
    }

    pub fn pay(&self) {
        *lock(&self.0) = Instant::now();
    }

    pub fn is_gone(&self) -> bool {
        lock(&self.0).elapsed() > ABSENCE
    }
}

/// A controller without calls for this long is considered hung.
const ABSENCE: Duration = Duration::from_secs(60);
/// Poisoning is ignored: no thread panics while it holds a lock, and the data is consistent at all times.
pub(in crate::agent) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the controller knows about an agent.
pub(in crate::agent) struct Seen {
    /// The number of its run, and the start of the agent that the run belongs to.
    pub run: Option<(u64, String)>,
    /// The last statistics of that run.
    pub statistics: Option<StatisticsView>,
    pub trouble: Option<String>,
    /// It answered that it does not permit what was asked.
    pub refuses: bool,
    pub heard: Instant,
    /// Since when it has been asked without a pause.
    pub asked: Instant,
    /// It answered that it does not have the run.
    pub unknown: bool,
    pub clock: Clock,
}

impl Seen {
    pub fn state(&self) -> Option<&str> {
        self.statistics.as_ref().map(|s| s.run.state.as_str())
    }

    /// The time since when it has not been sending, if it is missing.
    pub fn missing(&self, lease: Duration) -> Option<Instant> {
        let over = self.unknown || self.state() == Some("expired");
        (over || self.heard.elapsed() > lease).then_some(self.heard)
    }
}
