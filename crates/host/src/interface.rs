//! An existing interface, as one end of a bridge. Every frame that arrives on it is read, and frames that are written
//! leave by it. This machine's own packets on it are not affected.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType};
use rustix::io::Errno;

use super::device::{BUFFER, GSO_UDP, VnetHeader};
use super::merge::Train;
use super::netlink::Netlink;
use super::segment::{datagrams, segment};
use super::sys::devices as sys;
use super::sys::ring::Ring;
use super::wire::VNET_HEADER;
use crate::wire::{ETHERNET, network};
use crate::{Checksum, IpPacket, Nic};

/// Properties of an interface, to be checked before it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceFacts {
    /// Its name.
    pub name: String,
    /// The kernel's number of it. An interface that is created again has another one.
    pub index: u32,
    /// MTU: maximum packet size in bytes at the network layer.
    pub mtu: u32,
    /// It is up.
    pub up: bool,
    /// It belongs to a bridge or bond of the kernel.
    pub enslaved: bool,
    /// Its link layer is Ethernet.
    pub ethernet: bool,
    /// This machine's addresses of global scope on it.
    pub addresses: Vec<String>,
}

/// One end of a bridge.
pub struct Interface {
    socket: OwnedFd,
    /// Keeps other processes from opening the same interface.
    _claim: UnixListener,
    /// Received frames that fit into a slot of the ring. Without a ring, the socket holds all frames.
    ring: Option<Ring>,
    /// The virtio header, a frame of 64 KiB, and space for what precedes it.
    buffer: Box<[u8]>,
    cutter: Cutter,
    train: Train,
    /// The link-layer header of the packets in the train.
    train_prefix: Vec<u8>,
    overflown: Cell<u64>,
    malformed: u64,
    stamp: Option<u64>,
}

/// Shows frames with their tags, and performs the segmentation that the sender left to its card.
#[derive(Default)]
struct Cutter {
    /// Ethernet header and tags of the last frame that was read.
    prefix: Vec<u8>,
    /// A reassembled frame, and the header from which segments are built.
    whole: Vec<u8>,
    header: Vec<u8>,
}

impl InterfaceFacts {
    /// Reads the properties of an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// If there is no such interface.
    pub fn of(name: &str) -> io::Result<InterfaceFacts> {
        let mut netlink = Netlink::open()?;
        let index = netlink.index(name)?;
        let link = netlink.link_of(index)?;
        let mut facts = InterfaceFacts {
            name: name.into(),
            index,
            mtu: 0,
            up: link.header.flags.contains(LinkFlags::Up),
            enslaved: false,
            ethernet: link.header.link_layer_type == LinkLayerType::Ether,
            addresses: netlink.addresses(index)?,
        };
        for attribute in link.attributes {
            match attribute {
                LinkAttribute::Mtu(mtu) => facts.mtu = mtu,
                LinkAttribute::Controller(_) => facts.enslaved = true,
                _ => {}
            }
        }
        Ok(facts)
    }
}

impl Interface {
    /// Opens an interface of the calling thread's network namespace. `together` is how many this process opens, which
    /// share the memory for frames that wait to be read.
    ///
    /// # Errors
    /// If there is no such interface, another process has opened it, or this process may not read frames.
    pub fn open(name: &str, together: usize) -> io::Result<Interface> {
        let index = Netlink::open()?.index(name)?;
        let claim = claim(index)?;
        let (socket, ring) = sys::ringed_socket(index, together)?;
        sys::see_everything(&socket, index)?;
        Ok(Interface {
            socket,
            _claim: claim,
            ring,
            buffer: vec![0; BUFFER].into(),
            cutter: Cutter::default(),
            train: Train::default(),
            train_prefix: Vec::new(),
            overflown: Cell::new(0),
            malformed: 0,
            stamp: None,
        })
    }
}

/// Sends a frame.
fn send(socket: &OwnedFd, virtio: [u8; VNET_HEADER], prefix: &[u8], packet: &[u8]) -> bool {
    let parts = [&virtio[..], prefix, packet].map(IoSlice::new);
    loop {
        match rustix::io::writev(socket, &parts) {
            Err(Errno::INTR) => {}
            written => return written.is_ok(),
        }
    }
}

/// Claims an interface for this process: two readers would forward every frame twice, past each other's link. Names of
/// abstract sockets belong to a network namespace, as interfaces do, and the kernel releases them with the process.
fn claim(index: u32) -> io::Result<UnixListener> {
    let address = SocketAddr::from_abstract_name(format!("swell-interface-{index}"))?;
    UnixListener::bind_addr(&address).map_err(|e| match e.kind() {
        io::ErrorKind::AddrInUse => io::Error::new(
            io::ErrorKind::AddrInUse,
            "another bridge of swell has this interface",
        ),
        _ => e,
    })
}

/// A checksum whose position is counted from a point `by` bytes later.
fn later(checksum: Checksum, by: usize) -> Checksum {
    match checksum {
        Checksum::Full => Checksum::Full,
        Checksum::Partial { start, offset } => Checksum::Partial {
            start: start.saturating_sub(by as u16),
            offset,
        },
    }
}

/// A checksum whose position is counted from a point `by` bytes earlier.
fn earlier(checksum: Checksum, by: usize) -> Checksum {
    match checksum {
        Checksum::Full => Checksum::Full,
        Checksum::Partial { start, offset } => Checksum::Partial {
            start: start.saturating_add(by as u16),
            offset,
        },
    }
}

impl Cutter {
    /// Shows a frame preceded by a virtio header; returns `None` if it is invalid.
    fn show(
        &mut self,
        bytes: &[u8],
        tag: Option<[u8; 4]>,
        each: &mut dyn FnMut(IpPacket<'_>),
    ) -> Option<usize> {
        let (virtio, frame) = bytes.split_first_chunk()?;
        let virtio = VnetHeader::parse(virtio, 0);
        let (addresses, rest) = frame.split_at_checked(ETHERNET - 2)?;
        let tag = tag.as_ref().map_or(&[][..], |t| t);
        let checksum = earlier(virtio.checksum, tag.len());
        if virtio.gso == 0 {
            let whole = match tag {
                [] => frame,
                tag => {
                    self.whole.clear();
                    for part in [addresses, tag, rest] {
                        self.whole.extend_from_slice(part);
                    }
                    &self.whole
                }
            };
            each(IpPacket {
                header: whole,
                payload: &[],
                checksum,
            });
            return Some(1);
        }
        let start = network(frame)?;
        self.prefix.clear();
        for part in [addresses, tag, &frame[ETHERNET - 2..start]] {
            self.prefix.extend_from_slice(part);
        }
        let (prefix, whole) = (&self.prefix, &mut self.whole);
        let mut framed = |wire: IpPacket<'_>| {
            whole.clear();
            whole.extend_from_slice(prefix);
            whole.extend_from_slice(wire.header);
            each(IpPacket {
                header: whole,
                payload: wire.payload,
                checksum: earlier(wire.checksum, prefix.len()),
            });
        };
        let cut = match virtio.gso {
            GSO_UDP => datagrams,
            _ => segment,
        };
        let packet = &frame[start..];
        let own = later(virtio.checksum, start);
        cut(packet, own, virtio.size, &mut self.header, &mut framed).ok()
    }
}

impl Nic for Interface {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Shows frames with their tags. Super-packets are segmented.
    fn read(&mut self, each: &mut dyn FnMut(IpPacket<'_>)) -> io::Result<usize> {
        loop {
            let slot = match &self.ring {
                Some(ring) => match ring.slot(0) {
                    None => {
                        // An interface that was switched off is reported once, and until that is read the socket
                        // stays ready.
                        let _ = rustix::net::sockopt::socket_error(&self.socket);
                        return Ok(0);
                    }
                    here => here,
                },
                None => None,
            };
            let shown = match slot {
                Some(slot) if !slot.waits => {
                    self.stamp = Some(slot.stamp);
                    let whole = slot.bytes.len() == VNET_HEADER + slot.length;
                    let cut = || self.cutter.show(slot.bytes, slot.tag, each);
                    whole.then(cut).flatten()
                }
                _ => match sys::receive_frame(self.socket.as_fd(), &mut self.buffer) {
                    Ok(received) => {
                        self.stamp = received.stamp;
                        let bytes = &self.buffer[..received.length];
                        self.cutter.show(bytes, received.tag, each)
                    }
                    Err(Errno::INTR) => continue,
                    // The kernel discards a super-packet that a virtio header cannot describe.
                    Err(Errno::INVAL) => None,
                    // The frame that the ring announced should be there.
                    Err(Errno::AGAIN) if self.ring.is_some() => None,
                    // The interface is down: nothing arrives until it is up again.
                    Err(Errno::AGAIN | Errno::NETDOWN) => return Ok(0),
                    Err(e) => return Err(e.into()),
                },
            };
            if let Some(ring) = &mut self.ring {
                ring.give_back(1);
            }
            match shown {
                Some(count) => return Ok(count),
                None => self.malformed += 1,
            }
        }
    }

    /// As for [`Device`](super::Device). A tagged frame, and one without an IP packet, is written on its own.
    fn write(&mut self, frame: &[u8], checksum: Checksum) -> u64 {
        let Some((prefix, packet)) = frame
            .split_at_checked(ETHERNET)
            .filter(|_| network(frame) == Some(ETHERNET))
        else {
            let refused = self.flush();
            let virtio = VnetHeader::of(&[], checksum, None).bytes(0);
            return refused + u64::from(!send(&self.socket, virtio, frame, &[]));
        };
        let own = later(checksum, ETHERNET);
        if self.train.count() > 0 && self.train_prefix == prefix && self.train.push(packet, own) {
            return 0;
        }
        let refused = self.flush();
        self.train_prefix.clear();
        self.train_prefix.extend_from_slice(prefix);
        self.train.push(packet, own);
        refused
    }

    fn flush(&mut self) -> u64 {
        let count = u64::from(self.train.count());
        if count == 0 {
            return 0;
        }
        let (packet, checksum, size) = self.train.whole();
        let virtio = VnetHeader::of(packet, checksum, size).bytes(ETHERNET);
        let written = send(&self.socket, virtio, &self.train_prefix, packet);
        self.train.clear();
        if written { 0 } else { count }
    }

    /// Frames that the socket dropped for lack of space, and invalid ones.
    fn lost(&self) -> u64 {
        // The socket belongs to this interface, so it answers as long as the process lives.
        let more = sys::packet_drops(self.socket.as_fd()).unwrap_or(0);
        self.overflown.set(self.overflown.get() + more);
        self.overflown.get() + self.malformed
    }

    fn stamp(&self) -> Option<u64> {
        self.stamp
    }

    fn stamps(&self) -> bool {
        true
    }

    fn empty(&self) -> bool {
        self.ring.as_ref().is_some_and(Ring::empty)
    }
}
