//! Checks for impossible values in files of the right shape.

mod background;
mod change;
mod links;
mod qdisc;
mod rates;
mod routes;

use std::ops::{Deref, DerefMut, RangeInclusive};

use swell_base::{Bytes, Dur, Impossible, Rate};

use super::{BackendKind, File, Loss, RateSpec, TcpSettings};
use crate::kinds::{Foreground, Role, Slot};

/// Allowed number of runs of each foreground beside each background.
const REPLICATIONS: RangeInclusive<u32> = 1..=10_000;
/// Minimum RTO. Real hosts do not have finer timers.
const SHORTEST_RTO: Dur = Dur::from_millis(1);
/// Maximum clock granularity. Real hosts have at most the 500 ms of BSD.
const LONGEST_TICK: Dur = Dur::from_secs(1);
/// Maximum delay of an ACK (RFC 1122 section 4.2.3.2).
const LONGEST_ACK_DELAY: Dur = Dur::from_millis(500);
/// Most bytes of the name of an experiment. A file name has at most 255, and options add some to it.
const LONGEST_NAME: usize = 200;
/// Maximum overhead per packet, limited by 16 bits. It is more than any link layer adds.
const OVERHEAD: Bytes = Bytes(65_535);
/// Maximum length of a run. Counts per millisecond take 20 bytes per direction: 3.5 GB for a day.
const LONGEST: Dur = Dur::from_secs(86_400);
/// Maximum number of bins of a run: each is a row per link and direction, which is kept, written and read again.
const BINS: u64 = 1_000_000;
/// Maximum number of bins of all links together.
const ALL_BINS: u64 = 10_000_000;

/// Every impossible value in `file`.
pub(super) fn check(file: &File) -> Vec<Impossible> {
    let mut found = Findings::default();
    names(file, &mut found);
    links::check(file, &mut found);
    change::changes(file, &mut found);
    routes::check(file, &mut found);
    foregrounds(file, &mut found);
    background::backgrounds(file, &mut found);
    rates::check(file, &mut found);
    run(file, &mut found);
    found.0.into_all()
}

/// The impossible values found so far, with the checks that several kinds of traffic share.
#[derive(Default)]
pub(crate) struct Findings(swell_base::Findings);

impl Deref for Findings {
    type Target = swell_base::Findings;
    fn deref(&self) -> &swell_base::Findings {
        &self.0
    }
}

impl DerefMut for Findings {
    fn deref_mut(&mut self) -> &mut swell_base::Findings {
        &mut self.0
    }
}

impl Findings {
    /// Requires that `shares` under `key` are probabilities whose sum is 1; `of` says what they are shares of.
    pub fn shares(&mut self, key: String, shares: impl Iterator<Item = f64>, of: &str) {
        let mut sum = 0.0;
        for (i, share) in shares.enumerate() {
            sum += share;
            self.probability(format!("{key}[{i}].share"), share);
        }
        if (sum - 1.0).abs() > 1e-9 {
            let hint = format!("they are shares of all {of}: together 1");
            self.add(key, format!("the shares sum to {sum}"), &hint);
        }
    }

    /// Reports a background without a rate in either direction.
    pub fn silent(&mut self, key: String) {
        self.add(
            key,
            "a rate of 0 is no traffic",
            "write a rate, or a background of kind = \"none\"",
        );
    }

    /// Rejects a rate of zero, and a rate in addition to the key `other`, which also sets the load.
    pub fn scaled(&mut self, at: &Slot<'_>, rate: Option<&RateSpec>, other: &str, given: bool) {
        if matches!(rate, Some(RateSpec::Fixed(rate)) if *rate == Rate::default()) {
            self.add(
                at.key("rate"),
                "a rate of 0 is no background",
                "use kind = \"none\"",
            );
        }
        if rate.is_some() && given {
            self.add(
                at.key(other),
                format!("`rate` and `{other}` both set the load"),
                "give one of the two",
            );
        }
    }

    /// Rejects a foreground that takes its rate from a background.
    pub fn no_match(&mut self, at: &Slot<'_>, rate: Option<&RateSpec>) {
        if at.role == Role::Foreground && matches!(rate, Some(RateSpec::Match(_))) {
            self.add(
                at.key("rate"),
                "a foreground takes no rate from a background",
                "write a rate such as \"5Mbit\"",
            );
        }
    }

    pub fn packet(&mut self, key: String, packet: Bytes) {
        // IPv4 and UDP headers take 28 bytes; 65535 is the maximum length of an IP packet.
        if !(Bytes(29)..=Bytes(65_535)).contains(&packet) {
            self.add(
                key,
                format!("a packet of {packet} is out of range"),
                "write 29B to 65535B; 1500B fills an Ethernet frame",
            );
        }
    }

    pub fn sources(&mut self, key: String, sources: u32) {
        if !(1..=10_000).contains(&sources) {
            self.add(
                key,
                format!("{sources} sources are out of range"),
                "write 1 to 10000",
            );
        }
    }

    pub fn access(&mut self, key: String, rate: Option<Rate>) {
        if rate == Some(Rate::default()) {
            self.add(key, "access of rate 0 carries nothing", "");
        }
    }

    pub fn tcp(&mut self, key: &str, tcp: &TcpSettings) {
        if let Some(n) = tcp.initial_window
            && !(1..=1000).contains(&n)
        {
            self.add(
                format!("{key}.initial_window"),
                format!("an initial window of {n} segments is out of range"),
                "write 1 to 1000; 10 is usual",
            );
        }
        if let Some(rto) = tcp.min_rto
            && rto < SHORTEST_RTO
        {
            self.add(
                format!("{key}.min_rto"),
                format!("a shortest time-out of {rto} would retransmit without end"),
                "write 1ms or more; 200ms is usual",
            );
        }
        if let Some(mss) = tcp.mss
            && !(Bytes(64)..=Bytes(65_000)).contains(&mss)
        {
            self.add(
                format!("{key}.mss"),
                format!("a largest segment of {mss} is out of range"),
                "write 64B to 65kB; 1460B fills an Ethernet frame",
            );
        }
        if let Some(tick) = tcp.tick
            && tick > LONGEST_TICK
        {
            self.add(
                format!("{key}.tick"),
                format!("a clock that ticks every {tick} times nothing"),
                "write 0s to 1s; BSD had 500ms",
            );
        }
        if let Some(delay) = tcp.ack_delay
            && delay > LONGEST_ACK_DELAY
        {
            self.add(
                format!("{key}.ack_delay"),
                format!("an acknowledgement delayed by {delay} comes after the time-out"),
                "write 500ms or less, the most that RFC 1122 allows",
            );
        }
        for (name, n) in [
            ("send_window", tcp.send_window),
            ("initial_ssthresh", tcp.initial_ssthresh),
        ] {
            if n == Some(0) {
                self.add(
                    format!("{key}.{name}"),
                    "a window of 0 segments sends nothing",
                    "write 1 or more",
                );
            }
        }
        if let Some(v) = tcp.vegas {
            if v.alpha > v.beta {
                self.add(
                    format!("{key}.vegas"),
                    format!("alpha ({}) is above beta ({})", v.alpha, v.beta),
                    "the window grows below alpha and shrinks above beta",
                );
            }
            if v.beta.max(v.gamma) > u32::from(u16::MAX) {
                self.add(
                    format!("{key}.vegas"),
                    "more segments than any queue holds",
                    "write 0 to 65535",
                );
            }
        }
        if tcp.receive_window == Some(Bytes(0)) {
            self.add(
                format!("{key}.receive_window"),
                "nothing could ever be received",
                "",
            );
        }
    }
}

fn names(file: &File, found: &mut Findings) {
    if file.name.trim().is_empty() || file.name.contains(['/', '\\']) || file.name.starts_with('.')
    {
        found.add(
            "name",
            format!("`{}` cannot name a directory", file.name),
            "letters, digits and dashes, without slashes",
        );
    }
    if file.name.len() > LONGEST_NAME {
        found.add(
            "name",
            format!(
                "a name of {} bytes is too long for a directory",
                file.name.len()
            ),
            "write at most 200",
        );
    }
    let foregrounds: Vec<&str> = file.foreground.iter().map(|f| f.name()).collect();
    let backgrounds: Vec<&str> = file.background.iter().map(|b| b.name()).collect();
    for (list, names) in [("foreground", foregrounds), ("background", backgrounds)] {
        if names.is_empty() {
            found.add(list, format!("no {list}: nothing to run"), "");
        }
        for (i, name) in names.iter().enumerate() {
            let key = format!("{list}[{i}].name");
            if name.trim().is_empty() {
                found.add(key, "an empty name", "");
            } else if names[..i].contains(name) {
                found.add(
                    key,
                    format!("there are two {list}s called `{name}`"),
                    "names tell them apart in tables and pictures",
                );
            }
        }
    }
}

/// Rejects invalid loss probabilities; `key` makes their keys.
fn loss(key: impl Fn(&str) -> String, loss: Loss, found: &mut Findings) {
    match loss {
        Loss::None => {}
        Loss::Independent { p } => found.probability(key("p"), p),
        Loss::GilbertElliott {
            to_bad,
            to_good,
            loss_bad,
            loss_good,
        } => {
            found.probability(key("p_bad"), to_bad);
            found.probability(key("p_good"), to_good);
            found.probability(key("loss_bad"), loss_bad);
            found.probability(key("loss_good"), loss_good);
        }
    }
}

/// How long a foreground is measured in one piece: after the warm-up, in the longest of its windows if it has any.
fn watched_for(file: &File, foreground: &Foreground) -> Dur {
    let (from, to) = (file.run.warmup, file.run.duration);
    let Some(active) = foreground.active() else {
        return to.saturating_sub(from);
    };
    let windows = active.windows(to).into_iter();
    let after = windows.map(|(begin, end)| end.saturating_sub(begin.max(from)));
    after.max().unwrap_or_default()
}

fn foregrounds(file: &File, found: &mut Findings) {
    for (i, foreground) in file.foreground.iter().enumerate() {
        let key = |name: &str| format!("foreground[{i}].{name}");
        let at = Slot {
            role: Role::Foreground,
            backend: file.backend,
            stack: file.run.background_stack,
            duration: file.run.duration,
            measured: watched_for(file, foreground),
            key: &key,
        };
        foreground.keys().check(&at, found);
        if let Some(energy) = foreground.energy() {
            energy.check(&at, foreground.active().is_some(), found);
        }
        if let Some(active) = foreground.active() {
            active.check(&at, found);
            let sends = active.from < file.run.duration && active.on != Some(Dur::ZERO);
            if sends && file.run.warmup < file.run.duration && at.measured == Dur::ZERO {
                found.add(
                    key("active"),
                    format!(
                        "every window is over before the end of the warm-up ({})",
                        file.run.warmup
                    ),
                    "let a window reach beyond `run.warmup`",
                );
            }
            at.simulated_only(
                "windows of a foreground are simulated only",
                "write backend = \"simulated\", or leave `active` out",
                found,
            );
        }
        if let (Some(rtt), Some(delay)) = (file.network.rtt, foreground.delay(&file.network)) {
            let own = file.round_trip(&foreground.route());
            if own + delay * 4 != rtt {
                found.add(
                    key("delay"),
                    format!(
                        "the access delay makes a round trip of {}, the network says rtt = {rtt}",
                        own + delay * 4
                    ),
                    "give one of the two",
                );
            }
        }
    }
}

fn run(file: &File, found: &mut Findings) {
    let run = &file.run;
    for (key, kept, what) in [
        ("run.keep.waits", run.keep.waits, "waits are counted"),
        (
            "run.keep.synchrony",
            run.keep.synchrony,
            "losses are told apart",
        ),
        (
            "run.keep.waterfall",
            run.keep.waterfall,
            "packets of requests are followed",
        ),
        (
            "run.keep.rtts",
            run.keep.rtts,
            "round trips of packets are measured",
        ),
        (
            "run.keep.gaps",
            run.keep.gaps,
            "gaps between windows are measured",
        ),
        (
            "run.keep.records",
            run.keep.records.is_some(),
            "flow records are exported",
        ),
    ] {
        if kept && file.backend != BackendKind::Simulated {
            found.add(
                key,
                format!("{what} in simulated runs only"),
                "write backend = \"simulated\", or leave it out",
            );
        }
    }
    if let Some(records) = &run.keep.records {
        records.check(|name| format!("run.keep.records.{name}"), found);
    }
    // A link has a single tap, so only one of these can use it.
    let looks = [
        ("run.keep.packets", run.keep.packets),
        ("run.keep.records", run.keep.records.is_some()),
        ("run.keep.waterfall", run.keep.waterfall),
    ];
    let mut kept = looks.into_iter().filter(|l| l.1);
    if let (Some(_), Some((second, _))) = (kept.next(), kept.next()) {
        found.add(
            second,
            "packets, flow records and a waterfall are not kept of the same runs",
            "leave all but one of them out",
        );
    }
    if run.together && file.backend != BackendKind::Simulated {
        found.add(
            "run.together",
            "foregrounds run at the same time in simulated runs only",
            "write backend = \"simulated\", or leave it out",
        );
    }
    if let Some(target) = &run.suite {
        let named = file.background.iter().find(|b| b.name() == target);
        if named.is_none_or(|b| b.is_none()) {
            found.add(
                "run.suite",
                format!("no background that sends is called `{target}`"),
                "write the name of the background that the others are to stand in for",
            );
        }
    }
    if !REPLICATIONS.contains(&run.replications) {
        found.add(
            "run.replications",
            match run.replications {
                0 => "0 replications run nothing".to_owned(),
                n => format!("{n} replications are out of range"),
            },
            "write 1 to 10000; 10 give intervals",
        );
    }
    if run.duration == Dur::ZERO {
        found.add("run.duration", "a run of no length", "");
    } else if run.duration > LONGEST {
        found.add(
            "run.duration",
            format!("a run of {} is too long to be kept in memory", run.duration),
            "write a day (86400s) or less; more replications say more than longer runs",
        );
    } else if run.warmup >= run.duration {
        found.add(
            "run.warmup",
            format!(
                "the warm-up ({}) leaves nothing of the run ({})",
                run.warmup, run.duration
            ),
            "`duration` is the length of a run, warm-up included",
        );
    } else if run.bins == Dur::ZERO || run.bins > run.duration.saturating_sub(run.warmup) {
        found.add(
            "run.bins",
            format!("bins of {} do not fit into the run", run.bins),
            "for example \"100ms\"",
        );
    } else if let bins = run.duration.as_nanos() / run.bins.as_nanos()
        && let links = file.links().len() as u64
        && (bins > BINS || bins.saturating_mul(links) > ALL_BINS)
    {
        let of = match links {
            1 => String::new(),
            n => format!(" on {n} links"),
        };
        found.add(
            "run.bins",
            format!(
                "bins of {} are too many for a run of {}{of}: each of {bins} is a row of a table",
                run.bins, run.duration
            ),
            "write for example \"100ms\"; a link has at most 1000000 bins, all links together 10000000",
        );
    } else {
        // Totals are sums over bins from the end of the warm-up to the end of the run, so both must be bin boundaries.
        for (name, length) in [("warmup", run.warmup), ("duration", run.duration)] {
            if let Some(hint) = multiples(length, run.bins) {
                found.add(
                    format!("run.{name}"),
                    format!("{length} is no multiple of the bins ({})", run.bins),
                    &hint,
                );
            }
        }
    }
    if run
        .seed
        .checked_add(u64::from(run.replications))
        .is_none_or(|s| s > i64::MAX as u64)
    {
        found.add(
            "run.seed",
            "the seed leaves no room for the replications",
            "write a smaller number",
        );
    }
}

/// The multiples of `bins` closest to `length`; `None` if it is a multiple.
fn multiples(length: Dur, bins: Dur) -> Option<String> {
    let rest = length.as_nanos() % bins.as_nanos();
    let below = Dur::from_nanos(length.as_nanos() - rest);
    let above = below + bins;
    match (rest, below) {
        (0, _) => None,
        (_, Dur::ZERO) => Some(format!("write {above}")),
        _ => Some(format!("write {below} or {above}")),
    }
}
