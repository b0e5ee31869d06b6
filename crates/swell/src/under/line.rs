//! The status line of an emulation.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use swell_base::{Direction, Rate};
use swell_emulate::Snapshot;
use swell_experiment::Plan;

use crate::out::Log;

/// Maximum width if that of the terminal is unknown.
const WIDTH: usize = 79;

/// The columns that a line may fill. The last one stays free: a cursor behind it would begin another line.
fn width() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 1 => usize::from(size.ws_col) - 1,
        _ => WIDTH,
    }
}

/// A line on standard error that is overwritten repeatedly.
pub(crate) struct Line {
    rates: [Rate; 2],
    shown: bool,
    log: Option<Log>,
    before: Mutex<Option<Snapshot>>,
}

impl Line {
    /// A line for links of these rates; hidden if `quiet`, or without a terminal.
    pub fn new(rates: [Rate; 2], quiet: bool) -> Line {
        Line {
            rates,
            shown: !quiet && io::stderr().is_terminal(),
            log: (!quiet).then(Log::new),
            before: Mutex::default(),
        }
    }

    /// Updates the line, at most every half second.
    pub fn show(&self, now: &Snapshot) {
        if let Some(log) = &self.log {
            let late = now.late.p99.as_secs_f64() * 1e6;
            log.tell(|| format!("emulating: {} flows, late {late:.0} us", now.flows));
        }
        if !self.shown {
            return;
        }
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(then) = &*before else {
            *before = Some(now.clone());
            return;
        };
        let seconds = now.at.since(then.at).as_secs_f64();
        if seconds < 0.5 {
            return;
        }
        let text = text(then, now, seconds, self.rates, width());
        let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
        *before = Some(now.clone());
    }

    /// Erases the line.
    pub fn clear(&self) {
        if self.shown {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// The rates, up and down, of the link that the line describes: the slowest on the way to the foreground's clients.
pub(crate) fn rates(plan: &Plan) -> [Rate; 2] {
    let file = &plan.file;
    let slowest = file.foreground.first().and_then(|f| file.narrowest(f));
    let link = slowest.map_or(0, |[_, down]| down.queue.link);
    let links = plan.links();
    let link = links.get(link);
    Direction::BOTH.map(|d| link.map_or(Rate::default(), |l| l.directions[d].rate))
}

fn text(then: &Snapshot, now: &Snapshot, seconds: f64, rates: [Rate; 2], width: usize) -> String {
    let way = |d: Direction| {
        let mbit = |who: usize| {
            let bytes = now.carried[d][who].saturating_sub(then.carried[d][who]);
            bytes as f64 * 8.0 / seconds / 1e6
        };
        let both = mbit(0) + mbit(1);
        (both / rates[d].as_mbit() * 100.0, mbit(0), both)
    };
    let ((down, own_down, all_down), (up, own_up, all_up)) =
        (way(Direction::Down), way(Direction::Up));
    let parts = [
        format!("down {down:3.0} % (yours {own_down:.1} of {all_down:.1})"),
        format!("up {up:3.0} % ({own_up:.1} of {all_up:.1} Mbit/s)"),
        format!("late {:.0} us", now.late.p99.as_secs_f64() * 1e6),
        format!("{} flows", now.flows),
    ];
    // Parts that do not fit are omitted entirely: a truncated number would be wrong.
    let mut line = String::new();
    for part in parts {
        let gap = if line.is_empty() { "" } else { "  " };
        if line.chars().count() + gap.len() + part.chars().count() <= width {
            line += gap;
            line += &part;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_base::Time;

    #[test]
    fn the_line_fits_in_whole_parts_and_says_whose_traffic_it_is() {
        let then = Snapshot::default();
        let now = Snapshot {
            at: Time::from_secs_f64(1.0),
            carried: [[12_500, 0], [125_000, 1_125_000]],
            flows: 212,
            ..Snapshot::default()
        };
        let line = text(&then, &now, 1.0, [Rate::from_bps(10_000_000); 2], WIDTH);
        assert_eq!(
            line,
            "down 100 % (yours 1.0 of 10.0)  up   1 % (0.1 of 0.1 Mbit/s)  late 0 us"
        );
        // A wide terminal has all parts, a narrow one fewer.
        let of = |width| text(&then, &now, 1.0, [Rate::from_bps(10_000_000); 2], width);
        assert_eq!(of(200), format!("{line}  212 flows"));
        assert_eq!(of(40), "down 100 % (yours 1.0 of 10.0)");
        // Ten times as much on a faster link: no part is truncated.
        let fast = Snapshot {
            carried: [[1_250_000_000, 0], [1_250_000_000, 11_250_000_000]],
            ..now
        };
        let long = text(
            &then,
            &fast,
            1.0,
            [Rate::from_bps(100_000_000_000); 2],
            WIDTH,
        );
        assert!(long.len() <= WIDTH && long.ends_with(" Mbit/s)"), "{long}");
        assert!(line.len() <= WIDTH);
    }
}
