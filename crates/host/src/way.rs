//! The two kinds of device, and how packets pass between a device and this process.

use super::netlink::Netlink;
use super::sys::devices as sys;
use super::sys::features;
use crate::wire::ETHERNET;
use netlink_packet_route::link::{LinkAttribute, LinkFlags};
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// The device's name inside its host.
pub const DEVICE_NAME: &str = "swell0";
/// The end of a veth that this process uses.
const OTHER_NAME: &str = "swell1";

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A TUN device, the cheapest kind. Needs `/dev/net/tun`.
    Tun,
    /// One of a pair of virtual Ethernet devices; a packet socket reads the frames of the other. It costs more CPU
    /// time, but needs no device node. It always leaves segmentation to this process.
    Veth,
}

// Flags and offloads from linux/if_tun.h.
const IFF_TUN: i32 = 0x0001;
const IFF_NO_PI: i32 = 0x1000;
const IFF_VNET_HDR: i32 = 0x4000;
const TUN_F_CSUM: u32 = 0x01;
const TUN_F_TSO4: u32 = 0x02;
const TUN_F_TSO6: u32 = 0x04;
const TUN_F_TSO_ECN: u32 = 0x08;

/// Segmentation offloads of a veth that this process cannot do, because a virtio header does not describe them: TCP
/// in tunnels, and SCTP. Names of net/ethtool/common.c.
pub(super) const NOT_SEGMENTED: [&str; 9] = [
    "tx-gre-segmentation",
    "tx-gre-csum-segmentation",
    "tx-ipxip4-segmentation",
    "tx-ipxip6-segmentation",
    "tx-udp_tnl-segmentation",
    "tx-udp_tnl-csum-segmentation",
    "tx-tunnel-remcsum-segmentation",
    "tx-sctp-segmentation",
    "tx-esp-segmentation",
];

/// EtherTypes (RFC 894, RFC 2464).
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];

/// A descriptor on which packets are read and written after a virtio header and, with a veth, an Ethernet header.
#[derive(Debug)]
pub(super) struct Way {
    pub socket: OwnedFd,
    /// The Ethernet addresses before each packet that is written; `None` for a TUN device.
    addresses: Option<[u8; 12]>,
    /// The other end of a veth.
    pub other: Option<u32>,
}

impl Way {
    /// A TUN device in the calling thread's network namespace. With `offload`, super-packets are delivered whole.
    pub fn tun(offload: bool) -> io::Result<Way> {
        let tun = rustix::fs::open(
            "/dev/net/tun",
            OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        sys::tun_set_interface(tun.as_fd(), DEVICE_NAME, IFF_TUN | IFF_NO_PI | IFF_VNET_HDR)?;
        let offloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
        sys::tun_set_offload(tun.as_fd(), if offload { offloads } else { 0 })?;
        Ok(Way {
            socket: tun,
            addresses: None,
            other: None,
        })
    }

    /// Reads and writes as a TUN device does, over another descriptor.
    #[cfg(test)]
    pub fn over(socket: OwnedFd) -> Way {
        Way {
            socket,
            addresses: None,
            other: None,
        }
    }

    /// A veth pair in the calling thread's network namespace.
    pub fn veth(netlink: &mut Netlink, mtu: u16, queue: u32) -> io::Result<Way> {
        netlink.add_pair(DEVICE_NAME, OTHER_NAME, None)?;
        // A kernel that does not know one of them does not use it either.
        let _ = features::turn_off(DEVICE_NAME, &NOT_SEGMENTED);
        let ours = netlink.index(DEVICE_NAME)?;
        let other = netlink.index(OTHER_NAME)?;
        // The other end must not send packets of its own.
        let _ = std::fs::write(
            format!("/proc/sys/net/ipv6/conf/{OTHER_NAME}/disable_ipv6"),
            "1",
        );
        let attributes = vec![
            LinkAttribute::Mtu(u32::from(mtu)),
            LinkAttribute::TxQueueLen(queue),
        ];
        netlink.set_link(other, LinkFlags::Up | LinkFlags::Noarp, attributes)?;
        // Without ARP a device uses its own address as destination (net/ipv4/arp.c, `arp_constructor`), which is not
        // that of the other end. The network stack there ignores such frames, and only the packet socket receives
        // them.
        netlink.set_link(ours, LinkFlags::Noarp, Vec::new())?;
        let socket = sys::packet_socket(other)?;
        let mut addresses = [0; 12];
        addresses[..6].copy_from_slice(&netlink.hardware_address(ours)?);
        addresses[6..].copy_from_slice(&netlink.hardware_address(other)?);
        Ok(Way {
            socket,
            addresses: Some(addresses),
            other: Some(other),
        })
    }

    /// Reads a frame with its virtio header. Returns the length of both, and the arrival time if the kernel stamps
    /// packets.
    pub fn read(&self, buffer: &mut [u8]) -> rustix::io::Result<(usize, Option<u64>)> {
        if self.addresses.is_none() {
            return Ok((rustix::io::read(&self.socket, buffer)?, None));
        }
        let received = sys::receive_frame(self.socket.as_fd(), buffer)?;
        Ok((received.length, received.stamp))
    }

    /// Whether the kernel stamps received packets: packet sockets have stamps, TUN devices do not.
    pub fn stamps(&self) -> bool {
        self.addresses.is_some()
    }

    /// Number of link-layer bytes before a packet.
    pub fn frame(&self) -> usize {
        self.addresses.map_or(0, |_| ETHERNET)
    }

    /// The IP packet in a frame; `None` if the frame holds something else.
    pub fn packet<'a>(&self, frame: &'a [u8]) -> Option<&'a [u8]> {
        if self.addresses.is_none() {
            return Some(frame);
        }
        let (header, packet) = frame.split_at_checked(ETHERNET)?;
        (header[12..] == IPV4 || header[12..] == IPV6).then_some(packet)
    }

    /// The link-layer header of this packet, with its length.
    pub fn header(&self, packet: &[u8]) -> ([u8; ETHERNET], usize) {
        let mut header = [0; ETHERNET];
        let Some(addresses) = self.addresses else {
            return (header, 0);
        };
        header[..12].copy_from_slice(&addresses);
        let six = packet.first().is_some_and(|b| b >> 4 == 6);
        header[12..].copy_from_slice(if six { &IPV6 } else { &IPV4 });
        (header, ETHERNET)
    }
}
