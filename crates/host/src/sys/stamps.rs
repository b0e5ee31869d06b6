//! When packets left a device, as a packet socket beside it saw them. A TUN device gives no time stamps of its own.
#![expect(unsafe_code, reason = "no safe call attaches a filter to a socket")]

use std::os::fd::OwnedFd;

use rustix::io;

use super::devices::{bind_packet_socket, new_packet_socket, set_option};
use super::ring::{Ring, Size};

/// A place: a header of 32, an address of 20, both aligned, and 48 of the packet. There are more places than the queue of a
/// device holds after a stall.
const SIZE: Size = Size {
    place: 128,
    places: 16_384,
    before: 0,
};
/// Bytes of a packet by which it is recognised.
const FRONT: usize = 48;

/// Of linux/filter.h: `SKF_AD_OFF + SKF_AD_PKTTYPE`.
const PACKET_TYPE: u32 = 0xffff_f000 + 4;

/// A ring of the fronts of packets that a device has sent, each with its instant. The kernel writes it while a
/// packet is on its way to the device, so it is there before the packet can be read.
pub struct Stamps {
    ring: Ring,
    /// The device is watched as long as this is open.
    _socket: OwnedFd,
}

impl Stamps {
    /// Watches the device `index` of the calling thread's network namespace.
    pub fn of(index: u32) -> io::Result<Stamps> {
        let socket = new_packet_socket(libc::SOCK_DGRAM)?;
        // Of what the device sends, the front; of what it receives, nothing.
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

    /// When a packet that was read just now was sent, in nanoseconds since the Unix epoch. Packets before it that were never
    /// read were dropped by the device. `None` where the ring was full.
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
