//! Who has not shown the token yet: such connections are let go soon, and make room for newer ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;

/// The token must be shown so soon after connecting.
const ANONYMOUS: Duration = Duration::from_secs(5);

/// Connections on which the token has not been shown, by age.
#[derive(Debug, Default)]
pub(super) struct Visitors {
    anonymous: Mutex<BTreeMap<u64, Option<AbortHandle>>>,
}

/// A connection, as requests on it carry it with them.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    number: u64,
    all: Arc<Visitors>,
}

impl Visitors {
    /// A connection; numbers ascend.
    pub(super) fn visitor(self: &Arc<Visitors>, number: u64) -> Visitor {
        self.lock().insert(number, None);
        Visitor {
            number,
            all: Arc::clone(self),
        }
    }

    /// Ends the one that has been silent about the token for longest, if there is any.
    pub(super) fn make_room(&self) {
        if let Some((_, Some(task))) = self.lock().pop_first() {
            task.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Option<AbortHandle>>> {
        // A map is whole between any two calls.
        self.anonymous
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visitor {
    /// What ends the connection.
    pub(super) fn served_by(&self, task: AbortHandle) {
        if let Some(place) = self.all.lock().get_mut(&self.number) {
            *place = Some(task);
        }
    }

    /// The token has been shown, or the connection is over.
    pub(super) fn forget(&self) {
        self.all.lock().remove(&self.number);
    }

    /// Comes back if the token has not been shown in time, and never if it has.
    pub(super) async fn stays_anonymous(&self) {
        tokio::time::sleep(ANONYMOUS).await;
        let anonymous = self.all.lock().contains_key(&self.number);
        if !anonymous {
            std::future::pending::<()>().await;
        }
    }
}
