//! The only link of a host: a device whose other end is held by this process.

use super::merge::Train;
use super::netlink::Netlink;
use super::segment::{Layout, datagrams, segment};
use super::sys::devices as sys;
use super::sys::stamps::Stamps;
use super::way::{DEVICE_NAME, DeviceKind, Way};
use super::wire::VNET_HEADER;
use crate::{Checksum, IpPacket, Nic};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

/// Offloads that the host's kernel may use on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offload {
    /// The kernel delivers super-packets, as it does to a network card, and [`Nic::read`] segments them. The
    /// emulation sees the packets of the wire, and the host's cost is that of a real card. Packets that arrive
    /// together are merged on receive, as a card does.
    #[default]
    Segment,
    /// Super-packets are shown whole. This is the cheapest, but the emulation sees one packet of up to 64 KiB where
    /// the wire would have 45. Queues, losses and spacing are wrong by that factor.
    Pass,
    /// The kernel segments and computes checksums itself.
    Off,
}

/// Settings of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Maximum packet size in bytes at the network layer, 1280 to 65 535 (IPv6 needs 1280).
    pub mtu: u16,
    /// The kind of device; by default TUN if it can be opened.
    pub kind: Option<DeviceKind>,
    /// The offloads to use.
    pub offload: Offload,
    /// Queue length in packets (super-packets with offloads) that wait for [`Nic::read`] before the kernel drops.
    pub queue: u32,
}

impl Default for DeviceConfig {
    fn default() -> DeviceConfig {
        DeviceConfig {
            mtu: 1500,
            kind: None,
            offload: Offload::Segment,
            // Ten thousand packets of 1500 bytes are 120 ms at 1 Gbit/s: longer than a stall of a busy machine.
            queue: 10_000,
        }
    }
}

/// A device: packets that a host sends are read here, and packets written here are received by the host. It works
/// from any thread. A TUN device disappears with its file descriptor, a veth with its host.
pub struct Device {
    way: Way,
    /// Frames that the packet socket of a veth dropped for lack of buffer space.
    overflown: Cell<u64>,
    /// In a cell, so that counters can be read without mutable access.
    netlink: RefCell<Netlink>,
    index: u32,
    mtu: usize,
    offload: Offload,
    buffer: Box<[u8]>,
    header: Vec<u8>,
    train: Train,
    malformed: u64,
    /// When the last packet that was read arrived, if the kernel stamps packets.
    stamp: Option<u64>,
    /// For a TUN device, which does not stamp packets itself.
    stamps: Option<Stamps>,
}

/// Size of a packet of 64 KiB with the header before it.
pub(crate) const BUFFER: usize = VNET_HEADER + (1 << 16) + 256;

impl Device {
    /// Opens the device in the calling thread's network namespace. It is down and has no address.
    pub(super) fn open(config: &DeviceConfig) -> io::Result<Device> {
        let mut netlink = Netlink::open()?;
        let mut veth = || Way::veth(&mut netlink, config.mtu, config.queue);
        let tun = || Way::tun(config.offload != Offload::Off);
        let way = match config.kind {
            Some(DeviceKind::Tun) => tun()?,
            Some(DeviceKind::Veth) => veth()?,
            // If both fail, report why there is no TUN device, which is the more useful error.
            None => tun().or_else(|e| veth().map_err(|_| e))?,
        };
        let index = netlink.index(DEVICE_NAME)?;
        let mut device = Device::over(way, netlink, index, config);
        if !device.way.stamps() {
            // Without stamps, packets get the time at which they are read.
            device.stamps = Stamps::of(index).ok();
        }
        Ok(device)
    }

    fn over(way: Way, netlink: Netlink, index: u32, config: &DeviceConfig) -> Device {
        Device {
            way,
            stamps: None,
            overflown: Cell::new(0),
            netlink: RefCell::new(netlink),
            index,
            mtu: usize::from(config.mtu),
            offload: config.offload,
            buffer: vec![0; BUFFER].into(),
            header: Vec::new(),
            train: Train::default(),
            malformed: 0,
            stamp: None,
        }
    }

    /// Packets that the kernel dropped at the device since it was created. Either the host sent faster than they were
    /// read, or it could not receive those that were written. No network model asked for these losses.
    pub fn dropped(&self) -> io::Result<u64> {
        let mut netlink = self.netlink.borrow_mut();
        let mut lost = 0;
        for index in [Some(self.index), self.way.other].into_iter().flatten() {
            let counted = netlink.statistics(index)?;
            lost += counted.tx_dropped + counted.rx_dropped;
        }
        if self.way.other.is_some() {
            let more = sys::packet_drops(self.way.socket.as_fd())?;
            self.overflown.set(self.overflown.get() + more);
        }
        Ok(lost + self.overflown.get())
    }

    /// Number of super-packets that could not be segmented. Zero, unless the host uses raw sockets or forwards what
    /// other devices have merged.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }
}

impl Nic for Device {
    fn fd(&self) -> BorrowedFd<'_> {
        self.way.socket.as_fd()
    }

    /// Packets segmented from one super-packet carry the same arrival time, because a real card sends them back to
    /// back. An access link in front of a queue gives them the spacing of a wire.
    fn read(&mut self, each: &mut dyn FnMut(IpPacket<'_>)) -> io::Result<usize> {
        loop {
            let length = match self.way.read(&mut self.buffer) {
                Ok((n, stamp)) => {
                    self.stamp = stamp;
                    n
                }
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => continue,
                // The kernel discards a super-packet that a virtio header cannot describe (net/packet/af_packet.c,
                // `packet_rcv_vnet`; drivers/net/tun.c, `tun_put_user`).
                Err(Errno::INVAL) => {
                    self.malformed += 1;
                    continue;
                }
                Err(e) => return Err(e.into()),
            };
            let Some((virtio, frame)) = self.buffer[..length].split_first_chunk() else {
                self.malformed += 1;
                continue;
            };
            let Some(packet) = self.way.packet(frame) else {
                continue;
            };
            if let Some(stamps) = &mut self.stamps {
                self.stamp = stamps.take(packet);
            }
            let virtio = VnetHeader::parse(virtio, self.way.frame());
            if virtio.gso == 0 || self.offload == Offload::Pass {
                each(IpPacket {
                    header: packet,
                    payload: &[],
                    checksum: virtio.checksum,
                });
                return Ok(1);
            }
            let cut = match virtio.gso {
                GSO_UDP => datagrams,
                _ => segment,
            };
            match cut(packet, virtio.checksum, virtio.size, &mut self.header, each) {
                Ok(count) => return Ok(count),
                Err(_) => self.malformed += 1,
            }
        }
    }

    /// A partial checksum is passed on unchanged, and the host treats the packet as verified. A packet that continues
    /// the previous one is merged with it and written together.
    fn write(&mut self, packet: &[u8], checksum: Checksum) -> u64 {
        let refused = match self.offload {
            Offload::Segment if self.train.push(packet, checksum) => return 0,
            _ => self.flush(),
        };
        self.train.push(packet, checksum);
        refused
    }

    fn flush(&mut self) -> u64 {
        let count = u64::from(self.train.count());
        if count == 0 {
            return 0;
        }
        let (packet, checksum, mut size) = self.train.whole();
        if size.is_none() && packet.len() > self.mtu {
            // A super-packet as shown with `Offload::Pass`.
            let header = Layout::of(packet, checksum).map_or(0, |l| l.header);
            size = Some(self.mtu.saturating_sub(header).max(1) as u16);
        }
        let virtio = VnetHeader::of(packet, checksum, size);
        let virtio = virtio.bytes(self.way.frame());
        let (frame, length) = self.way.header(packet);
        let parts = [&virtio[..], &frame[..length], packet].map(IoSlice::new);
        let written = loop {
            match rustix::io::writev(&self.way.socket, &parts) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        self.train.clear();
        if written.is_ok() { 0 } else { count }
    }

    /// As [`Device::dropped`], and super-packets that could not be segmented.
    fn lost(&self) -> u64 {
        // The netlink socket belongs to this device, so it answers as long as the process lives.
        self.dropped().unwrap_or(0) + self.malformed
    }

    fn stamp(&self) -> Option<u64> {
        self.stamp
    }

    fn stamps(&self) -> bool {
        self.way.stamps() || self.stamps.is_some()
    }

    fn empty(&self) -> bool {
        self.stamps.as_ref().is_some_and(Stamps::empty)
    }
}

impl AsFd for Device {
    /// Readable when [`Nic::read`] would find something.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.way.socket.as_fd()
    }
}

const NEEDS_CSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
pub(super) const GSO_UDP: u8 = 5;
/// Marks a super-packet whose first segment has CWR set.
const GSO_ECN: u8 = 0x80;

pub(super) struct VnetHeader {
    pub gso: u8,
    pub size: u16,
    pub checksum: Checksum,
}

impl VnetHeader {
    /// The header of a TCP packet, or of several with `size` bytes of payload each.
    pub fn of(packet: &[u8], checksum: Checksum, size: Option<u16>) -> VnetHeader {
        VnetHeader {
            gso: match size {
                None => 0,
                Some(_) if packet[0] >> 4 == 4 => GSO_TCPV4,
                Some(_) => GSO_TCPV6,
            },
            size: size.unwrap_or(0),
            checksum,
        }
    }

    /// Reads a header. Its positions count from the packet, which follows `frame` bytes of link-layer header.
    pub fn parse(bytes: &[u8; VNET_HEADER], frame: usize) -> VnetHeader {
        let [flags, gso, _, _, s0, s1, c0, c1, o0, o1] = *bytes;
        VnetHeader {
            gso: gso & !GSO_ECN,
            size: u16::from_ne_bytes([s0, s1]),
            checksum: if flags & NEEDS_CSUM == 0 {
                Checksum::Full
            } else {
                Checksum::Partial {
                    start: u16::from_ne_bytes([c0, c1]).saturating_sub(frame as u16),
                    offset: u16::from_ne_bytes([o0, o1]),
                }
            },
        }
    }

    /// The length of the headers stays zero: the kernel uses it only as a hint and parses the packet itself.
    pub fn bytes(&self, frame: usize) -> [u8; VNET_HEADER] {
        let mut bytes = [0; VNET_HEADER];
        bytes[1] = self.gso;
        bytes[4..6].copy_from_slice(&self.size.to_ne_bytes());
        if let Checksum::Partial { start, offset } = self.checksum {
            bytes[0] = NEEDS_CSUM;
            let start = start.saturating_add(frame as u16);
            bytes[6..8].copy_from_slice(&start.to_ne_bytes());
            bytes[8..10].copy_from_slice(&offset.to_ne_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// A super-packet of TCP in a tunnel: its checksum is in a header that is not the first one.
    #[test]
    fn a_super_packet_that_cannot_be_cut_is_counted_as_lost() {
        let (kernel, ours) = UnixDatagram::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let way = Way::over(ours.into());
        // No device has this number, so the kernel counts nothing.
        let netlink = Netlink::open().unwrap();
        let mut device = Device::over(way, netlink, u32::MAX, &DeviceConfig::default());
        let mut packet = vec![0; 3000];
        packet[0] = 0x45;
        let inner = Checksum::Partial {
            start: 20 + 4 + 20,
            offset: 16,
        };
        let header = VnetHeader::of(&packet, inner, Some(1400)).bytes(0);
        kernel.send(&[&header[..], &packet].concat()).unwrap();
        kernel.send(&header[..4]).unwrap();
        assert_eq!(device.lost(), 0);
        let read = device
            .read(&mut |_| panic!("nothing can be shown"))
            .unwrap();
        assert_eq!((read, device.lost(), device.malformed()), (0, 2, 2));
    }
}
