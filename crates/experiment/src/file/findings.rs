//! What is wrong with the values of a file, collected while it is checked.

use std::ops::{Deref, DerefMut};

use swell_base::{Bytes, Dur, Rate};

use super::{BackendKind, Loss, RateSpec, Stack, TcpSettings};
use crate::role::Role;

/// Minimum RTO. Real hosts do not have finer timers.
const SHORTEST_RTO: Dur = Dur::from_millis(1);
/// Maximum clock granularity. Real hosts have at most the 500 ms of BSD.
const LONGEST_TICK: Dur = Dur::from_secs(1);
/// Maximum delay of an ACK (RFC 1122 section 4.2.3.2).
const LONGEST_ACK_DELAY: Dur = Dur::from_millis(500);
/// Maximum length of a run. Counts per millisecond take 20 bytes per direction: 3.5 GB for a day.
pub(super) const LONGEST: Dur = Dur::from_secs(86_400);

/// The impossible values found so far, with the checks that several kinds of traffic share.
#[derive(Default)]
pub struct Findings(pub(super) swell_base::Findings);

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

/// The context of a part in a file that is being checked.
pub struct Slot<'f> {
    /// Its role.
    pub role: Role,
    /// The backend of the experiment.
    pub backend: BackendKind,
    /// The endpoints of the backgrounds.
    pub stack: Stack,
    /// Length of a run, warm-up included.
    pub duration: Dur,
    /// The part of a run in which a foreground begins and is measured; of a background, the whole run.
    pub measured: Dur,
    /// Returns the full key for one of its own keys.
    pub key: &'f dyn Fn(&str) -> String,
}

impl Slot<'_> {
    /// The full key of `name`.
    pub fn key(&self, name: &str) -> String {
        (self.key)(name)
    }

    /// Rejects a foreground that only the simulator supports.
    pub fn simulated_only(&self, what: &str, hint: &str, found: &mut Findings) {
        if self.role == Role::Foreground && self.backend != BackendKind::Simulated {
            found.add(self.key("kind"), what, hint);
        }
    }
}

/// Rejects invalid loss probabilities; `key` makes their keys.
pub(super) fn loss(key: impl Fn(&str) -> String, loss: Loss, found: &mut Findings) {
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
