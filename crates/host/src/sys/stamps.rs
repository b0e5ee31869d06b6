//! When packets left a device, as a packet socket beside it saw them. A TUN device gives no time stamps of its own.
#![expect(
    unsafe_code,
    reason = "the ring of a packet socket is memory shared with the kernel"
)]

use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io;

use super::devices::{bind_packet_socket, last_error, new_packet_socket, set_option};

/// Bytes of a place in the ring: a header of 32, an address of 20, both aligned, and 48 of the packet
/// (Documentation/networking/packet_mmap.rst).
const FRAME: usize = 128;
/// Places of the ring: more than the queue of a device holds after a stall.
const FRAMES: usize = 16_384;
const BLOCK: usize = 1 << 16;
/// Bytes of a packet by which it is recognised.
const FRONT: usize = 48;

/// Of linux/if_packet.h.
const TPACKET_V2: libc::c_int = 1;
/// `SKF_AD_OFF + SKF_AD_PKTTYPE` of linux/filter.h.
const PACKET_TYPE: u32 = 0xffff_f000 + 4;

/// A ring of the fronts of packets that a device has sent, each with its instant. The kernel writes it while a
/// packet is on its way to the device, so it is there before the packet can be read.
pub struct Stamps {
    ring: NonNull<u8>,
    next: usize,
    /// The ring lives as long as it is mapped; the device is watched as long as this is open.
    _socket: OwnedFd,
}

// SAFETY: the ring is memory of this process alone, and belongs to this value.
unsafe impl Send for Stamps {}

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
        let places = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (FRAME * FRAMES / BLOCK) as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: FRAMES as u32,
        };
        // SAFETY: each option has the type that the kernel reads for it; the program points to instructions that outlive
        // the call.
        unsafe {
            set_option(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
            set_option(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &TPACKET_V2)?;
            set_option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &places)?;
        }
        // SAFETY: a new mapping of a length that the ring has.
        let ring = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                FRAME * FRAMES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if ring == libc::MAP_FAILED {
            return Err(last_error());
        }
        let ring = NonNull::new(ring.cast()).ok_or(io::Errno::NOMEM)?;
        let stamps = Stamps {
            ring,
            next: 0,
            _socket: socket,
        };
        bind_packet_socket(&stamps._socket, index)?;
        Ok(stamps)
    }

    /// When a packet that was read just now was sent, in nanoseconds since the Unix epoch. Packets before it that were never
    /// read were dropped by the device. `None` where the ring was full.
    pub fn take(&mut self, packet: &[u8]) -> Option<u64> {
        let found = (0..FRAMES).map_while(|k| {
            let (status, header) = self.place((self.next + k) % FRAMES);
            (status.load(Ordering::Acquire) & libc::TP_STATUS_USER != 0).then_some((k, header))
        });
        let mut found = found.filter(|(_, header)| {
            // SAFETY: the kernel has filled this place and does not touch it before it is given back; it keeps what it writes
            // inside the place.
            let front = unsafe {
                let start = header
                    .as_ptr()
                    .cast::<u8>()
                    .add(usize::from(header.as_ref().tp_net));
                let length = (header.as_ref().tp_snaplen as usize).min(FRONT);
                std::slice::from_raw_parts(start, length)
            };
            // SAFETY: as above.
            let length = unsafe { header.as_ref() }.tp_len as usize;
            length == packet.len() && packet.starts_with(front)
        });
        let (k, header) = found.next()?;
        // SAFETY: as above.
        let at = unsafe { header.as_ref() };
        let at = u64::from(at.tp_sec) * 1_000_000_000 + u64::from(at.tp_nsec);
        for _ in 0..=k {
            let (status, _) = self.place(self.next);
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % FRAMES;
        }
        Some(at)
    }

    /// Whether the device has sent nothing since.
    pub fn empty(&self) -> bool {
        let (status, _) = self.place(self.next);
        status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0
    }

    fn place(&self, number: usize) -> (&AtomicU32, NonNull<libc::tpacket2_hdr>) {
        debug_assert!(number < FRAMES && size_of::<libc::tpacket2_hdr>() <= FRAME);
        // SAFETY: the ring has so many places, which begin at multiples of 128 of a page, so that they are aligned; the first
        // word of each is its status, which both sides write as a whole.
        unsafe {
            let place = self.ring.add(number * FRAME).cast::<libc::tpacket2_hdr>();
            (AtomicU32::from_ptr(place.as_ptr().cast()), place)
        }
    }
}

impl Drop for Stamps {
    fn drop(&mut self) {
        // SAFETY: mapped in `of` with this length, and used by nobody else.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), FRAME * FRAMES) };
    }
}
