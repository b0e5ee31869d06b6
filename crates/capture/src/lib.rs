//! Reads captures and flow records from files, and writes pcapng and IPFIX files.
//!
//! [`Reader`] yields [`Packet`]s as the file has them: times, lengths, addresses and transport headers. [`InOrder`] puts
//! them in the order of their times, and drops copies that a mirror port or a second capture point made. [`Counts`]
//! reports what was read and what was lost on the way. [`Error`] reports where and why a file could not be read further.
//! Nothing is lost silently, nothing panics, and memory use does not grow with the file.
//!
//! ```
//! use swell_capture::{Reader, Transport};
//!
//! // A pcap file: little-endian, microseconds, snap length 96, raw IP, one packet of 28 bytes.
//! let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
//! file.extend([96, 0, 0, 0, 101, 0, 0, 0]);
//! file.extend([5, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 28, 0, 0, 0]);
//! file.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
//! file.extend([0, 53, 0x0f, 0xa0, 0, 8, 0, 0]);
//! // And a second one of which only the first two bytes are left.
//! file.extend([6, 0]);
//!
//! let mut reader = Reader::named("trace.pcap", &file[..])?;
//! let packet = reader.next_packet()?.expect("there is one");
//! assert_eq!(packet.time, 5_000_001_000);
//! assert!(matches!(packet.transport, Transport::Udp { dst_port: 4000, payload: 0, .. }));
//!
//! let error = reader.next_packet().unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "trace.pcap: at byte 68 (packet 2): the file ends inside a packet record header: \
//!      16 bytes needed, 2 left; the packet before it was read"
//! );
//! assert_eq!(reader.counts().udp, 1);
//! # Ok::<(), swell_capture::Error>(())
//! ```
//!
//! # What is read
//!
//! * **Files**: pcap (both byte orders, microseconds and nanoseconds, versions with swapped lengths, Kuznetzov's
//!   longer records), pcapng (several sections in either byte order, several interfaces with their own link type,
//!   snap length, `if_tsresol` and `if_tsoffset`; enhanced, simple and obsolete packet blocks), snoop. Plain or in
//!   gzip, zstd or xz, recognised by content.
//! * **Link layers**: Ethernet with 802.1Q, QinQ, MPLS, PPPoE and 802.2 SNAP; PPP, Cisco HDLC, Linux cooked (both
//!   versions), raw IP, BSD loopback. [`LinkType::SUPPORTED`] lists them all. Frames with other link types are
//!   skipped and counted by type number.
//! * **Above**: IPv4; IPv6 with extension headers; jumbograms and offloaded packets without a length; TCP with
//!   options; UDP. ICMP, fragments and other protocols are distinguished but not decoded.
//!
//! # What is written
//!
//! [`Writer`] writes pcapng: the kept bytes of a packet, its true length, and its time in nanoseconds.
//!
//! # What is not read
//!
//! **Tunnels are not followed** (IP in IP, 6in4, GRE, VXLAN, Geneve, GTP, Teredo, pseudowires): the packet is the
//! outer one, which is what the link carried. Fragments are not reassembled. Checksums are not verified, because
//! captures on the sending host rarely have valid ones. A damaged file is read up to
//! the damage but not beyond it, because there is no resynchronisation.
//!
//! # Cost
//!
//! Packets are returned by value, one by one, through one buffer. The file is read into that buffer and not mapped
//! into memory, so that pipes, compressed files and truncated files all take the same path. Each frame is examined
//! once. `cargo bench -p swell-capture` measures the cost.

mod apart;
mod bytes;
mod copies;
mod counts;
mod dissect;
mod doubts;
mod error;
mod evidence;
pub mod flow;
mod foreign;
mod identified;
mod in_order;
mod interfaces;
mod link;
mod packet;
mod pcap;
mod pcapng;
mod reader;
mod skip;
mod snoop;
mod source;
mod translated;
mod transport;
mod window;
mod writer;

pub use counts::Counts;
pub use dissect::{Frame, dissect};
pub use error::{Error, Problem};
pub use in_order::{InOrder, Packets, WINDOW};
pub use link::{Interface, LinkType};
pub use packet::{Heading, Packet, Tcp, TcpOptions, Transport};
pub use reader::{Format, Reader};
pub use skip::Skip;
pub use source::{Compression, open as decompress};
pub use transport::tcp_options;
pub use writer::{Record, WriteError, Writer};
