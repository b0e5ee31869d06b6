//! Renews the lease of an agent's part and reads its state.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::Method;

use super::super::api::{Change, RunView, StatisticsView};
use super::super::errors::RemoteError;
use super::super::remote::Remote;
use super::seen::{Attention, Seen, lock};

/// The state of an agent is requested at least this often.
const LOOK: Duration = Duration::from_millis(500);
/// Number of renewals per length of a lease.
const BEATS: u32 = 4;

/// Periodically renews the lease of a run and reads its state, independently of the controller's thread. That thread
/// may be writing to a slow disk, or waiting for an agent that is gone. While the controller's user makes no calls, it
/// pauses.
pub(super) async fn keep(
    mut remote: Remote,
    lease: Duration,
    seen: Arc<Mutex<Seen>>,
    attention: Attention,
) {
    let change = Change {
        lease_s: Some(lease.as_secs_f64()),
        ..Change::default()
    };
    let mut ticks = tokio::time::interval((lease / BEATS).min(LOOK));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if attention.is_gone() {
            // It is not missing while nobody asks.
            lock(&seen).asked = Instant::now();
            continue;
        }
        visit(&mut remote, &change, &seen).await;
    }
}

/// Sends a change and reads the state. An agent that is gone is asked again each time, because it may come back. Returns
/// false if it does not answer, or no longer has the run.
pub(super) async fn visit(remote: &mut Remote, change: &Change, seen: &Mutex<Seen>) -> bool {
    let Some((id, instance)) = lock(seen).run.clone() else {
        return true;
    };
    let path = format!("/v1/runs/{id}");
    let changed: Result<RunView, RemoteError> =
        remote.call(Method::PATCH, &path, Some(change)).await;
    match changed {
        // The agent was restarted, and the number belongs to another controller's run. Numbers are random, so this
        // hardly happens.
        Ok(view) if view.instance != instance => {
            unknown(seen, id);
            return false;
        }
        Ok(_) => {}
        Err(error) => {
            {
                let mut seen = lock(seen);
                seen.trouble = Some(error.to_string());
                seen.refuses = error.is_forbidden();
            }
            match error {
                _ if error.is_unknown() => {
                    unknown(seen, id);
                    return false;
                }
                // A finished run accepts no change, but reports how it ended.
                RemoteError::Refused { .. } => {}
                _ => return false,
            }
        }
    }
    look(remote, seen).await;
    true
}

/// Records that the agent does not have run `id`, unless it has been given another one in the meantime.
pub(super) fn unknown(seen: &Mutex<Seen>, id: u64) {
    let mut seen = lock(seen);
    if seen.run.as_ref().is_some_and(|r| r.0 == id) {
        seen.unknown = true;
    }
}

pub(super) async fn look(remote: &mut Remote, seen: &Mutex<Seen>) {
    let Some((id, instance)) = lock(seen).run.clone() else {
        return;
    };
    let path = format!("/v1/runs/{id}/statistics");
    let sent = Instant::now();
    let said: Result<StatisticsView, RemoteError> =
        remote.call(Method::GET, &path, None::<&()>).await;
    let received = Instant::now();
    let mut seen = lock(seen);
    if seen.run.as_ref().is_none_or(|r| r.0 != id) {
        return;
    }
    match said {
        Ok(statistics) if statistics.run.instance == instance => {
            // Only while it is sending: afterwards the elapsed time may stop.
            if statistics.run.state == "playing" {
                seen.clock.add(sent, received, statistics.run.elapsed_s);
            }
            // A finished part still counts as heard. An expired part counts as missing since it was last heard
            // sending, and so does one that could not be started.
            if statistics.run.state != "expired" && !seen.unknown {
                seen.heard = received;
            }
            seen.statistics = Some(statistics);
        }
        Ok(_) => seen.unknown = true,
        Err(error) => seen.trouble = Some(error.to_string()),
    }
}
