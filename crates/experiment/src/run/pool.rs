//! Work over cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::Event;

/// Does `work` on every item, `threads` at a time, in order of their starts. The results are in
/// the order of the items; `None` where cancellation or a failure came first. The first failure
/// in the order of the items is the one returned.
pub(super) fn over_cores<T: Sync, R: Send, E: Send>(
    threads: usize,
    items: &[T],
    work: &(dyn Fn(usize, &T) -> Result<R, E> + Sync),
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Option<R>>, E> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let done: Mutex<Vec<Option<Result<R, E>>>> =
        Mutex::new((0..items.len()).map(|_| None).collect());
    let worker = || {
        while !cancelled() && !failed.load(Ordering::Relaxed) {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(i) else { return };
            let result = work(i, item);
            if result.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            lock(&done)[i] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            scope.spawn(worker);
        }
        worker();
    });
    let done = std::mem::take(&mut *lock(&done));
    done.into_iter().map(Option::transpose).collect()
}

/// A panic in another worker ends the program through the scope; what it left in here is whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Adds up the shares of the runs under way.
pub(super) struct Progress<'p> {
    before: usize,
    shares: Mutex<Vec<f64>>,
    events: &'p (dyn Fn(Event<'_>) + Sync),
}

impl<'p> Progress<'p> {
    /// `before` runs are done already, `runs` are to come.
    pub(super) fn new(
        before: usize,
        runs: usize,
        events: &'p (dyn Fn(Event<'_>) + Sync),
    ) -> Progress<'p> {
        Progress {
            before,
            shares: Mutex::new(vec![0.0; runs]),
            events,
        }
    }

    /// Run `slot` is done to this share.
    pub(super) fn share(&self, slot: usize, share: f64) {
        let mut shares = lock(&self.shares);
        shares[slot] = share.clamp(0.0, 1.0);
        let done = self.before as f64 + shares.iter().sum::<f64>();
        drop(shares);
        (self.events)(Event::Progress(done));
    }
}
