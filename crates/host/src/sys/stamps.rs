//! Times at which packets left a device, from a packet socket on that device. A TUN device provides no timestamps
//! itself.
#![expect(unsafe_code, reason = "no safe call attaches a filter to a socket")]

use std::os::fd::OwnedFd;

use rustix::io;

use super::devices::{bind_packet_socket, new_packet_socket};
use super::ring::{Ring, Size};
use super::socket::set_option;

/// A slot has a header of 32 bytes, an address of 20, both aligned, and 48 bytes of the packet. There are more slots
/// than packets in the queue of a device after a stall.
const SIZE: Size = Size {
    place: 128,
    places: 16_384,
    before: 0,
};
/// Number of bytes by which a packet is recognised.
const FRONT: usize = 48;

/// From linux/filter.h: `SKF_AD_OFF + SKF_AD_PKTTYPE`.
const PACKET_TYPE: u32 = 0xffff_f000 + 4;

/// A ring with the first bytes of the packets that a device sent, each with its timestamp. The kernel writes it while
/// a packet is on its way to the device, so the entry exists before the packet can be read.
pub struct Stamps {
    ring: Ring,
    /// The device is monitored as long as this is open.
    _socket: OwnedFd,
}

impl Stamps {
    /// Monitors the device `index` of the calling thread's network namespace.
    pub fn of(index: u32) -> io::Result<Stamps> {
        let socket = new_packet_socket(libc::SOCK_DGRAM)?;
        // Captures the first bytes of packets that the device sends, and nothing of those that it receives.
        let code = |code: u32, jt, jf, k| libc::sock_filter {
            code: code as u16,
            jt,
            jf,
            k,
        };
        let mut filter = [
            code(
                libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
                0,
                0,
                PACKET_TYPE,
            ),
            code(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                0,
                1,
                u32::from(libc::PACKET_OUTGOING),
            ),
            code(libc::BPF_RET | libc::BPF_K, 0, 0, FRONT as u32),
            code(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        ];
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_mut_ptr(),
        };
        // SAFETY: the option has this type; the program points to instructions that outlive the call.
        unsafe {
            set_option(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
        }
        let ring = Ring::of(&socket, SIZE)?;
        bind_packet_socket(&socket, index)?;
        Ok(Stamps {
            ring,
            _socket: socket,
        })
    }

    /// When the packet that was just read was sent, in nanoseconds since the Unix epoch. Earlier entries belong to
    /// packets that the device dropped. `None` if the ring was full.
    pub fn take(&mut self, packet: &[u8]) -> Option<u64> {
        let mut found = (0..SIZE.places).map_while(|k| Some((k, self.ring.slot(k)?)));
        let (k, at) = found.find_map(|(k, slot)| {
            let front = &slot.bytes[..slot.bytes.len().min(FRONT)];
            (slot.length == packet.len() && packet.starts_with(front)).then_some((k, slot.stamp))
        })?;
        self.ring.give_back(k + 1);
        Some(at)
    }

    /// Whether the device has sent nothing since.
    pub fn empty(&self) -> bool {
        self.ring.empty()
    }
}
