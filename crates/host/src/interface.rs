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
    /// The header of virtio, a frame of 64 KiB, and room for what comes before.
    buffer: Box<[u8]>,
    /// Ethernet header and tags of the frame that was read last.
    prefix: Vec<u8>,
    /// A frame put together again, and the header that segments are made of.
    whole: Vec<u8>,
    header: Vec<u8>,
    train: Train,
    /// What stands before the packets of the train.
    train_prefix: Vec<u8>,
    overflown: Cell<u64>,
    malformed: u64,
    stamp: Option<u64>,
}

const BUFFER: usize = VNET_HEADER + (1 << 16) + 256;

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
        let socket = sys::packet_socket(index)?;
        sys::see_everything(&socket, index)?;
        Ok(Interface {
            socket,
            buffer: vec![0; BUFFER].into(),
            prefix: Vec::new(),
            whole: Vec::new(),
            header: Vec::new(),
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

impl Nic for Interface {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Shows frames, with their tags. What the sender's card was to cut is cut.
    fn read(&mut self, each: &mut dyn FnMut(Wire<'_>)) -> io::Result<usize> {
        loop {
            let received = match sys::receive_frame(self.socket.as_fd(), &mut self.buffer) {
                Ok(received) => received,
                Err(Errno::AGAIN) => return Ok(0),
                // The interface was switched off: nothing comes until it is on again.
                Err(Errno::NETDOWN) => return Ok(0),
                Err(Errno::INTR) => continue,
                Err(e) => return Err(e.into()),
            };
            self.stamp = received.stamp;
            let bytes = &self.buffer[..received.length];
            let Some((virtio, frame)) = bytes.split_first_chunk() else {
                self.malformed += 1;
                continue;
            };
            let virtio = VnetHeader::parse(virtio, 0);
            let Some((addresses, rest)) = frame.split_at_checked(ETHERNET - 2) else {
                self.malformed += 1;
                continue;
            };
            let tag = received.tag.as_ref().map_or(&[][..], |t| t);
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
                return Ok(1);
            }
            let Some(start) = network(frame) else {
                self.malformed += 1;
                continue;
            };
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
            match cut(packet, own, virtio.size, &mut self.header, &mut framed) {
                Ok(count) => return Ok(count),
                Err(_) => self.malformed += 1,
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
}
