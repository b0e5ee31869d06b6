//! Other people's files, read into packets.
//!
//! [`Reader`] yields [`Packet`]s; [`Counts`] says what was read and what was lost on the way.

mod bytes;
mod counts;
mod dissect;
mod error;
mod foreign;
mod link;
mod packet;
mod pcap;
mod pcapng;
mod reader;
mod snoop;
mod source;
mod transport;
mod window;

pub use counts::{Counts, Skip};
pub use dissect::{Frame, dissect};
pub use error::{Error, Problem};
pub use link::LinkType;
pub use packet::{Packet, Tcp, TcpOptions, Transport};
pub use reader::{Format, Interface, Reader};
pub use source::Compression;
pub use transport::tcp_options;
