//! The ring of a packet socket: packets that it receives lie in memory that kernel and program share, each with its instant.
//! Reading them takes no system call (Documentation/networking/packet_mmap.rst).
#![expect(
    unsafe_code,
    reason = "the ring of a packet socket is memory shared with the kernel"
)]

use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io;

use super::devices::{last_error, set_option, tag};

/// Places are made in pieces of this many bytes.
const BLOCK: usize = 1 << 16;
/// Of linux/if_packet.h.
const TPACKET_V2: libc::c_int = 1;

/// How large a ring is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Bytes of a place, a power of two of at least 128, the kernel's header among them.
    pub place: usize,
    /// How many places there are, together a multiple of 64 KiB.
    pub places: usize,
    /// Bytes that the kernel writes before the link-layer header: the header of virtio, where the socket has that.
    pub before: usize,
}

/// Places for packets, which the kernel fills in turn.
pub struct Ring {
    memory: NonNull<u8>,
    size: Size,
    next: usize,
}

// SAFETY: the ring is memory of this process alone, and belongs to this value.
unsafe impl Send for Ring {}

/// A packet in the ring.
pub struct Slot<'r> {
    /// What is kept of it, and what stands before.
    pub bytes: &'r [u8],
    /// Its length, without what stands before.
    pub length: usize,
    /// When it came, in nanoseconds since the Unix epoch.
    pub stamp: u64,
    /// The tag of a virtual LAN that the kernel took out of the frame.
    pub tag: Option<[u8; 4]>,
    /// The place is too small for it, and it waits in the socket as a whole.
    pub waits: bool,
}

impl Ring {
    /// The ring of a socket that is bound to no device yet.
    pub fn of(socket: &OwnedFd, size: Size) -> io::Result<Ring> {
        let length = size.place * size.places;
        let places = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (length / BLOCK) as u32,
            tp_frame_size: size.place as u32,
            tp_frame_nr: size.places as u32,
        };
        // SAFETY: each option has the type that the kernel reads for it.
        unsafe {
            set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &TPACKET_V2)?;
            set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &places)?;
        }
        // SAFETY: a new mapping of a length that the ring has.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(last_error());
        }
        Ok(Ring {
            memory: NonNull::new(memory.cast()).ok_or(io::Errno::NOMEM)?,
            size,
            next: 0,
        })
    }

    /// The packet after so many others, if it is there.
    pub fn slot(&self, ahead: usize) -> Option<Slot<'_>> {
        let (status, header) = self.place(ahead);
        let status = status.load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has filled this place and does not touch it before it is given back, which takes the ring
        // mutably; it keeps what it writes inside the place.
        let (header, bytes) = unsafe {
            let start = header.as_ptr().cast::<u8>();
            let header = header.as_ref();
            let before = self.size.before.min(usize::from(header.tp_mac));
            let start = start.add(usize::from(header.tp_mac) - before);
            let length = before + header.tp_snaplen as usize;
            (header, std::slice::from_raw_parts(start, length))
        };
        Some(Slot {
            bytes,
            length: header.tp_len as usize,
            stamp: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            tag: tag(status, header.tp_vlan_tci, header.tp_vlan_tpid),
            waits: status & libc::TP_STATUS_COPY != 0,
        })
    }

    /// Gives so many places back.
    pub fn give_back(&mut self, count: usize) {
        for _ in 0..count {
            let (status, _) = self.place(0);
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.size.places;
        }
    }

    /// Whether nothing is there.
    pub fn empty(&self) -> bool {
        let (status, _) = self.place(0);
        status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0
    }

    fn place(&self, ahead: usize) -> (&AtomicU32, NonNull<libc::tpacket2_hdr>) {
        let number = (self.next + ahead) % self.size.places;
        debug_assert!(size_of::<libc::tpacket2_hdr>() <= self.size.place);
        // SAFETY: the ring has so many places, which begin at multiples of 128 of a page, so that they are aligned; the first
        // word of each is its status, which both sides write as a whole.
        unsafe {
            let place = self.memory.add(number * self.size.place);
            let place = place.cast::<libc::tpacket2_hdr>();
            (AtomicU32::from_ptr(place.as_ptr().cast()), place)
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped in `of` with this length, and used by nobody else.
        unsafe {
            libc::munmap(
                self.memory.as_ptr().cast(),
                self.size.place * self.size.places,
            )
        };
    }
}
