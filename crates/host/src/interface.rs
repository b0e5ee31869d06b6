//! An interface that is there already, one end of a bridge: every frame that comes in by it is read, frames that are
//! written leave by it. This machine's own packets on it are left alone.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType};
use rustix::io::Errno;

use super::device::{GSO_UDP, VNET_HEADER, VnetHeader};
use super::merge::Train;
use super::netlink::Netlink;
use super::segment::{datagrams, segment};
use super::sys::devices as sys;
use super::sys::ring::Ring;
use crate::wire::{ETHERNET, network};
use crate::{Checksum, Nic, Wire};

/// What is to be known of an interface before anything is joined to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceFacts {
    /// Its name.
    pub name: String,
    /// Largest packet in bytes of the network layer.
    pub mtu: u32,
    /// It is switched on.
    pub up: bool,
    /// A bridge or bond of the kernel has it.
    pub enslaved: bool,
    /// It has a link layer of Ethernet.
    pub ethernet: bool,
    /// Addresses of this machine on it, as far as they reach beyond the link.
    pub addresses: Vec<String>,
}

/// One end of a bridge.
pub struct Interface {
    socket: OwnedFd,
    /// What was received and fits in a place of it. Without, the socket holds everything.
    ring: Option<Ring>,
    /// The header of virtio, a frame of 64 KiB, and room for what comes before.
    buffer: Box<[u8]>,
    cutter: Cutter,
    train: Train,
    /// What stands before the packets of the train.
    train_prefix: Vec<u8>,
    overflown: Cell<u64>,
    malformed: u64,
    stamp: Option<u64>,
}

const BUFFER: usize = VNET_HEADER + (1 << 16) + 256;

/// Shows frames with their tags, and cuts what the sender's card was to cut.
#[derive(Default)]
struct Cutter {
    /// Ethernet header and tags of the frame that was read last.
    prefix: Vec<u8>,
    /// A frame put together again, and the header that segments are made of.
    whole: Vec<u8>,
    header: Vec<u8>,
}

impl InterfaceFacts {
    /// Those of an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// If there is no such interface.
    pub fn of(name: &str) -> io::Result<InterfaceFacts> {
        let mut netlink = Netlink::open()?;
        let index = netlink.index(name)?;
        let link = netlink.link_of(index)?;
        let mut facts = InterfaceFacts {
            name: name.into(),
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
    /// Opens an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// Where there is none of that name, or this process may not read frames.
    pub fn open(name: &str) -> io::Result<Interface> {
        let index = Netlink::open()?.index(name)?;
        let (socket, ring) = sys::ringed_socket(index)?;
        sys::see_everything(&socket, index)?;
        Ok(Interface {
            socket,
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

    /// Sends a frame.
    fn send(&self, virtio: [u8; VNET_HEADER], prefix: &[u8], packet: &[u8]) -> bool {
        let parts = [&virtio[..], prefix, packet].map(IoSlice::new);
        loop {
            match rustix::io::writev(&self.socket, &parts) {
                Err(Errno::INTR) => {}
                written => return written.is_ok(),
            }
        }
    }
}

/// A checksum whose place is counted from `by` bytes later on.
fn later(checksum: Checksum, by: usize) -> Checksum {
    match checksum {
        Checksum::Full => Checksum::Full,
        Checksum::Partial { start, offset } => Checksum::Partial {
            start: start.saturating_sub(by as u16),
            offset,
        },
    }
}

/// A checksum whose place is counted from `by` bytes before.
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
    /// Shows what came with a header of virtio before it; `None` where that made no sense.
    fn show(
        &mut self,
        bytes: &[u8],
        tag: Option<[u8; 4]>,
        each: &mut dyn FnMut(Wire<'_>),
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
            each(Wire {
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
        let mut framed = |wire: Wire<'_>| {
            whole.clear();
            whole.extend_from_slice(prefix);
            whole.extend_from_slice(wire.header);
            each(Wire {
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

    /// Shows frames, with their tags. What the sender's card was to cut is cut.
    fn read(&mut self, each: &mut dyn FnMut(Wire<'_>)) -> io::Result<usize> {
        loop {
            let slot = match &self.ring {
                Some(ring) => match ring.slot(0) {
                    None => {
                        // An interface that was switched off is told once, and until then the socket is ready.
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
                    // What the ring announced is there.
                    Err(Errno::AGAIN) if self.ring.is_some() => None,
                    // The interface was switched off: nothing comes until it is on again.
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

    /// As [`Device`](super::Device) does; a tagged frame, and one without an IP packet, is written alone.
    fn write(&mut self, frame: &[u8], checksum: Checksum) -> u64 {
        let Some((prefix, packet)) = frame
            .split_at_checked(ETHERNET)
            .filter(|_| network(frame) == Some(ETHERNET))
        else {
            let refused = self.flush();
            let virtio = VnetHeader::of(&[], checksum, None).bytes(0);
            return refused + u64::from(!self.send(virtio, frame, &[]));
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
        // The borrow of the train ends before the socket is used.
        let parts = [&virtio[..], &self.train_prefix, packet].map(IoSlice::new);
        let written = loop {
            match rustix::io::writev(&self.socket, &parts) {
                Err(Errno::INTR) => {}
                written => break written,
            }
        };
        self.train.clear();
        if written.is_ok() { 0 } else { count }
    }

    /// Frames that the socket had no room for, and those that made no sense.
    fn lost(&self) -> u64 {
        // The socket is ours, so that it answers as long as the process lives.
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
