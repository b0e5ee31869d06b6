//! Simulated TCP endpoints: state machines that take segments and times, and return segments
//! and deadlines. No payload is moved, only byte counts.
//!
//! Two types matter. A [`Config`] says what a TCP does; [`Config::linux`], [`Config::classic`],
//! [`Config::ns2_era`] and [`Config::ns2_modern`] are the profiles, and single fields change by struct update syntax. An [`Endpoint`] is one end of
//! one connection. Whoever owns it
//!
//! * gives it what arrives ([`Endpoint::handle_segment`]) and what is due ([`Endpoint::handle_timeout`]),
//!   and what the application does ([`Endpoint::send`], [`Endpoint::close`], [`Endpoint::abort`]);
//! * after each of these takes out everything: [`Endpoint::poll`] until `None` for the application,
//!   [`Endpoint::poll_transmit`] until `None` for the network;
//! * then asks [`Endpoint::poll_timeout`] when to come back. Deadlines move with nearly every segment;
//!   one wake-up kept per endpoint, which asks again when it fires too early, is enough.
//!
//! ```
//! use std::sync::Arc;
//! use swell_base::{Dur, Time};
//! use swell_tcp::{Algorithm, Config, Endpoint, Event};
//!
//! let config = Arc::new(Config { algorithm: Algorithm::NewReno, ..Config::linux() });
//! let mut ends = [Endpoint::client(config.clone()), Endpoint::server(config)];
//! ends[0].send(100_000);
//! ends[0].close();
//!
//! // A path that delays by 10 ms and does nothing else.
//! let (mut now, mut flying, mut received) = (Time::ZERO, Vec::new(), 0);
//! loop {
//!     for end in 0..2 {
//!         while let Some(event) = ends[end].poll() {
//!             match event {
//!                 Event::Received(bytes) => received += bytes,
//!                 Event::Eof => ends[end].close(),
//!                 _ => {}
//!             }
//!         }
//!         while let Some(segment) = ends[end].poll_transmit(now) {
//!             flying.push((now + Dur::from_millis(10), 1 - end, segment));
//!         }
//!     }
//!     let timers = ends.iter().filter_map(Endpoint::poll_timeout);
//!     let Some(next) = flying.iter().map(|f| f.0).chain(timers).min() else {
//!         break; // nothing flies and nobody waits: the conversation is over
//!     };
//!     now = next;
//!     if let Some(i) = flying.iter().position(|f| f.0 <= now) {
//!         let (_, to, (segment, sacks)) = flying.remove(i);
//!         ends[to].handle_segment(now, &segment, &sacks);
//!     } else {
//!         ends.iter_mut().for_each(|e| e.handle_timeout(now));
//!     }
//! }
//! assert_eq!(received, 100_000);
//! // 20 ms each for the handshake and for windows of 10, 20 and 40 segments, the last of which
//! // carries the FIN one way and brings the server's back; 10 ms to acknowledge that.
//! assert_eq!(now, Time::from_secs_f64(0.09));
//! assert!(ends.iter().all(Endpoint::is_closed));
//! ```
//!
//! # How it is made
//!
//! An endpoint is a sender, a receiver and a shell around them for handshake, close and reset. The
//! sender keeps one record per segment in flight, in a scoreboard that counts what is selectively
//! acknowledged and what is lost, so that an acknowledgement in order costs a pop and no scan.
//! Congestion control is an enum moved by a few notifications: acknowledged, loss, idle. A new one
//! is a file under `cc/`, a variant there and one in [`Algorithm`].
//!
//! The price of simplicity: both ends know what a handshake would negotiate, so they must be
//! configured alike in [`Config::sack`]. An endpoint with nothing in flight takes 320 bytes and at
//! most 100 more of kept buffer; what only losses and single profiles need comes on top where it is needed. Both ends
//! and a world's tables stay below 1 KiB with Reno and the ns-2 profiles; with Vegas and Linux they do not.
//!
//! # Not modelled
//!
//! * TIME-WAIT: an endpoint is over when both FINs are acknowledged. Keep asking it until its peer
//!   is over too; it still answers a repeated FIN.
//! * Applications that read slowly; reneging.
//! * HyStart++ (RFC 9406).
//! * Undoing a false reduction without SACK. A duplicate reported when nothing is in flight any more undoes nothing.
//! * Segmentation offload, pacing other than BBR's, ECN negotiation, PMTU discovery, urgent data, keep-alives, Linux's adaptive
//!   delayed-acknowledgement timer and its decay of a window used in part.
//! * Attackers: RFC 5961 and SYN cookies.

mod cc;
mod config;
mod endpoint;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;

pub use config::{Algorithm, Config, IdleRestart, Jitter, LossBase, Ns2, VegasConfig};
pub use endpoint::{Endpoint, Event, Sent, Stats};
