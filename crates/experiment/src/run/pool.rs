//! A pool of worker threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::options::Event;

/// Calls `work` on every item, `threads` at a time, starting them in order. The results are in
/// the order of the items; `None` for items that did not start before a cancellation. After a failure no further
/// item starts, and the failure that is first in the order of the items is returned.
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

/// Locks `mutex` even if it is poisoned. A panic in a worker propagates through the scope anyway, and no data is left
/// half-written.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Sums the progress of all runs of a stage.
pub(super) struct Progress<'p> {
    before: usize,
    shares: Mutex<Vec<f64>>,
    events: &'p (dyn Fn(Event<'_>) + Sync),
}

impl<'p> Progress<'p> {
    /// `before` runs are finished already, `runs` are to come.
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

    /// Reports that this share of run `slot` is finished.
    pub(super) fn share(&self, slot: usize, share: f64) {
        let mut shares = lock(&self.shares);
        shares[slot] = share.clamp(0.0, 1.0);
        let done = self.before as f64 + shares.iter().sum::<f64>();
        drop(shares);
        (self.events)(Event::Progress(done));
    }
}
