//! The ring of a packet socket: received packets lie in memory shared by kernel and program, each with its timestamp.
//! Reading them needs no system call (Documentation/networking/packet_mmap.rst).
#![expect(
    unsafe_code,
    reason = "the ring of a packet socket is memory shared with the kernel"
)]

use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io;

use super::socket::{last, set_option};

/// Slots are allocated in blocks of this many bytes.
const BLOCK: usize = 1 << 16;
/// From linux/if_packet.h.
const TPACKET_V2: libc::c_int = 1;

/// Dimensions of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Bytes per slot, including the kernel's header: a power of two, at least 128.
    pub place: usize,
    /// Number of slots; the total size must be a multiple of 64 KiB.
    pub places: usize,
    /// Bytes that the kernel writes before the link-layer header: the virtio header, if the socket has one.
    pub before: usize,
}

/// Slots for packets, which the kernel fills in turn.
pub struct Ring {
    memory: NonNull<u8>,
    size: Size,
    next: usize,
}

// SAFETY: only this process has the ring's memory, and this value owns it.
unsafe impl Send for Ring {}

/// A packet in the ring.
pub struct Slot<'r> {
    /// The captured bytes, including those before the link-layer header.
    pub bytes: &'r [u8],
    /// Its full length, without the bytes before the link-layer header.
    pub length: usize,
    /// Arrival time in nanoseconds since the Unix epoch.
    pub stamp: u64,
    /// The VLAN tag that the kernel removed from the frame.
    pub tag: Option<[u8; 4]>,
    /// The packet does not fit into the slot; the socket holds all of it.
    pub waits: bool,
}

impl Ring {
    /// Creates the ring of a socket that is not yet bound to a device.
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
        // SAFETY: a new mapping with the length of the ring.
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
            return Err(last());
        }
        Ok(Ring {
            memory: NonNull::new(memory.cast()).ok_or(io::Errno::NOMEM)?,
            size,
            next: 0,
        })
    }

    /// The packet `ahead` slots after the next one, if it has arrived.
    pub fn slot(&self, ahead: usize) -> Option<Slot<'_>> {
        let (status, header) = self.place(ahead);
        let status = status.load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has filled this slot and does not touch it before it is given back, which borrows the
        // ring mutably. It writes only inside the slot.
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

    /// Returns `count` slots to the kernel.
    pub fn give_back(&mut self, count: usize) {
        for _ in 0..count {
            let (status, _) = self.place(0);
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.size.places;
        }
    }

    /// Whether no packet is waiting.
    pub fn empty(&self) -> bool {
        let (status, _) = self.place(0);
        status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0
    }

    fn place(&self, ahead: usize) -> (&AtomicU32, NonNull<libc::tpacket2_hdr>) {
        let number = (self.next + ahead) % self.size.places;
        debug_assert!(size_of::<libc::tpacket2_hdr>() <= self.size.place);
        // SAFETY: the ring has this many slots, which start at multiples of 128 from a page boundary and so are
        // aligned. The first word of each is its status, which both sides write as a whole.
        unsafe {
            let place = self.memory.add(number * self.size.place);
            let place = place.cast::<libc::tpacket2_hdr>();
            (AtomicU32::from_ptr(place.as_ptr().cast()), place)
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped in `of` with this length, and not used elsewhere.
        unsafe {
            libc::munmap(
                self.memory.as_ptr().cast(),
                self.size.place * self.size.places,
            )
        };
    }
}

/// The VLAN tag that the kernel removed from a frame, from the frame's metadata (packet(7), `struct
/// tpacket_auxdata`).
pub(super) fn tag(status: u32, information: u16, protocol: u16) -> Option<[u8; 4]> {
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let kind = match status & libc::TP_STATUS_VLAN_TPID_VALID {
        0 => 0x8100,
        _ => protocol,
    };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), information.to_be_bytes());
    Some([a, b, c, d])
}
