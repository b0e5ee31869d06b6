//! Doubts about calibrated rates.

use swell_base::{Code, Direction, Rate, Warning};

use super::super::options::Rates;
use super::job::{Job, Site};
use super::search::{DOUBTFUL, Search, Try};
use crate::backend::Offered;
use crate::file::{Background, Change, Queue, queues};
use crate::kinds::{MOST_COPIES, Part};
use crate::plan::Plan;
use crate::store::Measured;

/// More copies of the model's sessions than this raise a doubt: many copies of few sessions are
/// smoother than many different sessions.
const MANY: f64 = 10.0;
/// A note reports rates of single seeds that differ by more than this share of the lowest.
const UNEVEN: f64 = 0.25;
/// An open-loop background that loses more than this share of its packets alone raises a doubt: it does not slow down,
/// but real traffic would.
const LOSSY: f64 = 0.01;

/// Draws of packets that offer a rate apart from the requested one by more than this share raise a doubt. The verdict
/// rejects runs that miss a load by as much.
const ASTRAY: f64 = 0.25;

/// All doubts about a finished search: its best try, and the rates that follow from it.
pub(super) fn of(site: &Site<'_>, job: &Job<'_>, best: &Try, measured: &Measured) -> Vec<Warning> {
    let name = job.background.name();
    let mut doubts: Vec<Warning> = missed(name, &job.search, best).into_iter().collect();
    // What datagrams offer beyond the request is lost, and what arrives hides it.
    let of_datagrams = job.unyielding && job.search.offered && job.search.target.is_some();
    let fixed = doubts.is_empty() && job.background.fixed_bps(site.known).is_some();
    if fixed || of_datagrams {
        doubts.extend(astray(name, job.offered(best.pace)));
    }
    if job.unyielding && best.lost > LOSSY {
        let what = match job.background.is_open_loop() {
            true => "it does",
            false => "most of it does",
        };
        doubts.push(Warning::warning(
            Code::OpenLoopLoss,
            format!(
                "background {name} loses {:.1} % of its packets with the network to itself: {what} not slow down, as the traffic that it stands for would",
                best.lost * 100.0
            ),
        ));
    }
    doubts.extend(of_rates(name, measured));
    doubts
}

/// A doubt if the draws of the runs together offer another rate than the requested one, although nothing is scaled.
fn astray(name: &str, offers: &[Option<Offered>]) -> Option<Warning> {
    let known: Vec<&Offered> = offers.iter().flatten().collect();
    let sum = |of: fn(&Offered) -> [f64; 2]| {
        [0, 1].map(|d| known.iter().map(|o| of(o)[d]).sum::<f64>() / known.len() as f64)
    };
    let (asked, drawn) = (sum(|o| o.mean), sum(|o| o.drawn));
    let misses = |d: &Direction| asked[*d] > 0.0 && (drawn[*d] / asked[*d] - 1.0).abs() > ASTRAY;
    let mut each = [Direction::Down, Direction::Up].into_iter();
    let d = each.find(misses)?;
    Some(Warning::warning(
        Code::RateMissed,
        format!(
            "background {name}: {:.2} Mbit/s {} were asked for, and the draws of these runs offer {:.2} Mbit/s: few sources with long periods vary as much; more of them, longer runs or more replications come nearer",
            asked[d] / 1e6,
            d.name(),
            drawn[d] / 1e6
        ),
    ))
}

/// A doubt if the best try misses the target.
pub(super) fn missed(name: &str, search: &Search, best: &Try) -> Option<Warning> {
    let target = search.target?;
    if search.off(best) <= DOUBTFUL {
        return None;
    }
    let (mega, came) = (target / 1e6, best.rate[1] / 1e6);
    let pace = best.pace.unwrap_or(1.0);
    let why = match best.rate[1] {
        0.0 => "nothing came through",
        more if more > target => "it is too much",
        _ if search.tried.iter().any(|t| t.rate[1] > target) => "no other try came nearer",
        _ if search.offered => "it does not offer more, or the network carries no more",
        _ if search.full => "the network carries no more",
        _ if pace >= search.most => return Some(crowded(name, mega, came)),
        // Large files may have made more sessions carry less.
        _ => "the network carries no more, or runs are too short to show its mean",
    };
    Some(Warning::warning(
        Code::RateMissed,
        format!(
            "background {name}: {mega:.2} Mbit/s were asked for, {came:.2} Mbit/s came of {pace:.3} times its own load: {why}",
        ),
    ))
}
/// A doubt about a search that ended with the most copies that are made.
fn crowded(name: &str, mega: f64, came: f64) -> Warning {
    Warning::warning(
        Code::RateMissed,
        format!(
            "background {name}: {mega:.2} Mbit/s were asked for, {came:.2} Mbit/s came of {MOST_COPIES} copies of its model, and no more are made",
        ),
    )
}

/// Doubts about backgrounds that were learnt from another one at other sessions, or at another speed, than it plays
/// with: they were learnt before anything was measured.
pub(super) fn of_copies(plan: &Plan, measured: &Rates) -> Vec<Warning> {
    let all = &plan.file.background;
    let doubt = |copy: &Background| {
        let (of, _) = copy.keys().imitates()?;
        let original = all.iter().find(|b| b.name() == of)?;
        let learnt = plan.first_pace(original, &Rates::new())?;
        let plays = measured.get(of)?.pace()?;
        let apart = (plays / learnt - 1.0).abs() > DOUBTFUL;
        apart.then(|| {
            Warning::warning(
                Code::CopiedApart,
                format!(
                    "background {} was learnt from {of} at {learnt:.3} times its own load, and {of} plays {plays:.3} times: their loads differ as much",
                    copy.name()
                ),
            )
        })
    };
    all.iter().filter_map(doubt).collect()
}

/// Doubts about backgrounds whose slowest link is another one later in a run. Loads are counted at the link that is the
/// slowest at the beginning, and what is lost behind it counts as carried.
pub(super) fn of_links(plan: &Plan) -> Vec<Warning> {
    let file = &plan.file;
    let links = file.links();
    // The lowest and the highest rate of a queue; `None` for a packet-delivery trace.
    let range = |queue: Queue| {
        let (keys, d) = (&links[queue.link].keys, queue.direction);
        let start = &keys.directions()[d];
        let within = |c: &&Change| c.direction.has(d) && c.at < file.run.duration;
        let changes = || keys.change.iter().filter(within);
        let traced = start.deliveries.is_some() || changes().any(|c| c.deliveries.is_some());
        let rates = || changes().filter_map(|c| c.rate);
        (!traced).then(|| {
            let [low, high] = [start.rate; 2];
            [rates().fold(low, Rate::min), rates().fold(high, Rate::max)]
        })
    };
    let doubt = |part: &Part| {
        let slowest = file.narrowest(part)?;
        let hops = file.hops(&part.route());
        Direction::BOTH.into_iter().find_map(|d| {
            let at_first = &slowest[d];
            let first = range(at_first.queue)?;
            // At its lowest it is slower than the first can be, or the first is faster than it can be.
            let later = queues(&hops, d).into_iter().find(|&other| {
                let slower = |[low, high]: [Rate; 2]| low < first[0] || high < first[1];
                other != at_first.queue && range(other).is_some_and(slower)
            })?;
            Some(Warning::warning(
                Code::SlowestChanges,
                format!(
                    "background {}: its slowest link {} is `{}` when a run begins, and `{}` later: its loads are counted at the first",
                    part.name(),
                    d.name(),
                    at_first.link,
                    links[later.link].name
                ),
            ))
        })
    };
    let sends = |part: &&Background| part.parts().is_empty() && !part.is_none();
    let parts = file.background.iter().filter(sends);
    parts.filter_map(|part| doubt(part)).collect()
}

/// Doubts about the measured rates of background `name`.
pub(super) fn of_rates(name: &str, m: &Measured) -> Vec<Warning> {
    let mut doubts = Vec::new();
    let mega = |bps: f64| bps / 1e6;
    if m.target_bps.is_some() && m.up_bps > m.down_bps {
        doubts.push(Warning::warning(
            Code::UpExceedsDown,
            format!(
                "background {name}: it was scaled until {:.2} Mbit/s flow down, and {:.2} Mbit/s flow up: the up link may be the bottleneck",
                mega(m.down_bps),
                mega(m.up_bps),
            ),
        ));
    }
    if let Some(k) = m.sessions
        && k > MANY
    {
        doubts.push(Warning::warning(
            Code::ManyCopies,
            format!(
                "background {name}: {k:.1} x the model's sessions: many copies of few sessions are smoother than real traffic of this rate; learn from a busier link",
            ),
        ));
    }
    let each = || m.down_bps_each.iter().copied();
    let (low, high) = each().fold((f64::INFINITY, 0.0f64), |(l, h), x| (l.min(x), h.max(x)));
    if high > (1.0 + UNEVEN) * low {
        doubts.push(Warning::note(
            Code::UnevenSeeds,
            format!(
                "background {name}: {:.2} to {:.2} Mbit/s down by seed; what matches it has its mean over the seeds, unless it says match = \"per-seed\"",
                mega(low),
                mega(high),
            ),
        ));
    }
    doubts
}
