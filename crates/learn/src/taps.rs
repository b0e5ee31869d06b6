//! Two taps of one path: which traffic passes both, and which one of them.
//!
//! ```text
//!   inside        first tap             second tap        outside
//!   ────────────────●──────────┬─────┬─────●──────────────────
//!     through ═════════════════│═════│══════════════════════►
//!     cross of the first ══════╝     ╚═════ cross of the second
//! ```
//!
//! A [`Matcher`] reads both captures, one after the other, and compares them. A flow passes both taps if packets of the same
//! addresses, ports and protocol, of either direction, are in both captures at the same time. The clocks of the taps may
//! differ by a constant: the first packets of flows tell it ([`Clocks`]). A [`Split`] reads both captures again, and gives
//! each packet to one of three learners. Only the time in which both taps recorded counts.
//!
//! Through traffic is learnt as the first tap sees it. Its model is one: what happens on both links is caused by the same
//! sessions, when it is played over both. Of each link, [`Links`] has the energy at every octave, and what both links have
//! in common ([`swell_stats::coherences`]): the truth that a playback is compared with.
//!
//! Memory is bounded by the flows that are compared ([`MOST_FLOWS`]), a small record per host and tap, and what a learner
//! needs. Of more flows, those with the fewest packets are forgotten.
//! They count as cross traffic, and a warning says how much that is.
//!
//! Not followed: flows whose addresses or ports a NAT changes between the taps (connections among them are recognised by
//! their sequence numbers, and reported), tunnels that only one tap sees, and routes that change during a flow.

mod clocks;
mod flow;
mod matcher;
mod split;
#[cfg(test)]
mod tests;

pub use clocks::Clocks;
pub use matcher::{Forgotten, MOST_FLOWS, Matched, Matcher, NoMatch};
pub use split::{Links, Parted, Split, Traffic};
