//! Other people's files, read into packets.
//!
//! [`Reader`] yields [`Packet`]s; [`Counts`] says what was read and what was lost on the way.

mod packet;

pub use packet::{Packet, Tcp, TcpOptions, Transport};
