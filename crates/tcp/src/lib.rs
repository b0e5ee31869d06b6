//! Simulated TCP endpoints: state machines that take segments and times, and return segments
//! and deadlines. No payload is moved, only byte counts.
//!
//! Two types matter. A [`Config`] holds the settings of a TCP. [`Config::linux`], [`Config::classic`],
//! [`Config::ns2_era`] and [`Config::ns2_modern`] are the profiles; single fields change by struct update syntax.
//! [`Config::quic`] makes it QUIC. An [`Endpoint`] is one end of one connection. Its owner
//!
//! * passes in arriving segments ([`Endpoint::handle_segment`]), expired deadlines ([`Endpoint::handle_timeout`]),
//!   and the calls of the application ([`Endpoint::send`], [`Endpoint::close`], [`Endpoint::abort`]);
//! * after each of these drains the results: [`Endpoint::poll`] until `None` for the application,
//!   [`Endpoint::poll_transmit`] until `None` for the network;
//! * then asks [`Endpoint::poll_timeout`] for the next deadline. Deadlines move with nearly every segment. One
//!   scheduled wake-up per endpoint is enough, if it asks again when it fires too early.
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
//! # Design
//!
//! An endpoint is a sender, a receiver, and a shell around them for handshake, close and reset. The sender keeps one
//! record per segment in flight in a scoreboard, which counts selectively acknowledged and lost segments. An in-order
//! acknowledgement therefore costs a pop and no scan. Congestion control is an enum with a few notifications:
//! acknowledgement, loss, idle time. A new algorithm needs a file under `cc/`, a variant there and one in
//! [`Algorithm`].
//!
//! The price of simplicity: nothing is negotiated in the handshake, so both ends must have the same [`Config::sack`].
//! An endpoint with nothing in flight takes 320 bytes and at most 100 more of retained buffer. State that only losses
//! or single profiles need is allocated on demand. Both ends and a world's tables stay below 1 KiB with Reno and the
//! ns-2 profiles; with Vegas and Linux they do not.
//!
//! # Not modelled
//!
//! * TIME-WAIT: an endpoint is closed when both FINs are acknowledged. Keep passing segments to it until its peer is
//!   closed too; it still answers a repeated FIN.
//! * Applications that read slowly; receivers that renege on SACKed data.
//! * HyStart++ (RFC 9406).
//! * Undoing a false reduction without SACK. A duplicate reported after the flight has ended undoes nothing.
//! * Segmentation offload, pacing other than BBR's, ECN negotiation, PMTU discovery, urgent data, keep-alives,
//!   Linux's adaptive delayed-acknowledgement timer, and Linux's decay of a partly used window.
//! * Attackers: RFC 5961 and SYN cookies.

mod cc;
mod clock;
mod config;
mod endpoint;
mod front;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;

pub use config::{Algorithm, Config, IdleRestart, Jitter, LossBase, Ns2, VegasConfig};
pub use endpoint::{Endpoint, Event, Sent, Stats};
