//! Parts that send only in time windows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::Dur;

use crate::file::findings::{Findings, Slot};

/// When a part sends. Each window begins like a run: learnt traffic with its sessions in progress, on/off sources in
/// steady state, everything else as at its first packet. At its end connections are reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Active {
    /// When the first window begins, since the beginning of the run, warm-up included.
    #[serde(default)]
    pub from: Dur,
    /// Length of a window. Default: until the run is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Dur>,
    /// From the end of a window to the beginning of the next. Default: there is one window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<Dur>,
}

/// Maximum number of windows of one part in a run.
const MOST: u64 = 10_000;

impl Active {
    /// Start and end of each window in a run of this length.
    pub fn windows(&self, duration: Dur) -> Vec<(Dur, Dur)> {
        let on = self.on.unwrap_or(duration);
        let period = match self.off {
            Some(off) => on + off,
            None => duration,
        };
        let all = (0..MOST).map(|i| self.from + period * i);
        all.take_while(|&begin| begin < duration && period > Dur::ZERO)
            .map(|begin| (begin, (begin + on).min(duration)))
            .collect()
    }

    /// The share of the time from `from` to `to` in which it sends.
    pub fn share(&self, from: Dur, to: Dur) -> f64 {
        let within = |(begin, end): (Dur, Dur)| end.saturating_sub(begin.max(from)).as_secs_f64();
        let sent: f64 = self.windows(to).into_iter().map(within).sum();
        sent / to.saturating_sub(from).as_secs_f64().max(1e-9)
    }

    /// Rejects windows in which nothing is sent.
    pub(crate) fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        let key = |name: &str| at.key(&format!("active.{name}"));
        if self.from >= at.duration {
            found.add(
                key("from"),
                format!("it begins at {}, when the run is over", self.from),
                "write less than `run.duration`",
            );
        }
        if self.on == Some(Dur::ZERO) {
            found.add(
                key("on"),
                "a window of no length",
                "write for example \"5min\"",
            );
        }
        match (self.on, self.off) {
            (None, Some(_)) => found.add(
                key("on"),
                "`off` is the time between windows, and there is one window without end",
                "write how long a window is",
            ),
            (_, Some(Dur::ZERO)) => found.add(
                key("off"),
                "windows without time between them are one window",
                "leave `on` and `off` out",
            ),
            (Some(on), Some(off)) if at.duration.as_nanos() / (on + off).as_nanos() >= MOST => {
                found.add(
                    key("on"),
                    format!("more than {MOST} windows in a run"),
                    "write longer ones",
                );
            }
            _ => {}
        }
    }
}
