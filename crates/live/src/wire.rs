//! Packets with their bytes, and where they come from.

use std::io;
use std::os::fd::BorrowedFd;

/// Whether the transport checksum of a packet is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// It is complete.
    #[default]
    Full,
    /// It is that of the pseudo-header alone; the sum over everything from byte `start` of the packet
    /// on is to be added, and belongs at `start + offset` (as `virtio_net_hdr` has it: virtio 1.2,
    /// section 5.1.6.2).
    Partial {
        /// Where the transport header begins.
        start: u16,
        /// Where in the transport header the checksum is.
        offset: u16,
    },
}

/// An IP packet as a wire would see it: no larger than the MTU.
#[derive(Clone, Copy, Debug)]
pub struct Wire<'a> {
    /// Its IP and transport headers; where it was not cut out of something larger, all of it.
    pub header: &'a [u8],
    /// What follows the headers.
    pub payload: &'a [u8],
    /// Of the transport header.
    pub checksum: Checksum,
}

/// A host's only way out: a device whose other end is the host's IP stack.
pub trait Nic: Send {
    /// Readable when packets wait.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Reads once and shows every packet there was, in order; returns how many, 0 = none wait.
    ///
    /// # Errors
    /// Where the device is gone.
    fn read(&mut self, each: &mut dyn FnMut(Wire<'_>)) -> io::Result<usize>;

    /// Hands a packet to the host, at the latest at the next [`flush`](Nic::flush). Returns how many packets
    /// the host did not take, be it this one or one before it.
    fn write(&mut self, packet: &[u8], checksum: Checksum) -> u64;

    /// Hands over what was held back. Returns how many packets the host did not take.
    fn flush(&mut self) -> u64;

    /// Packets that the host sent and the device lost since it was made.
    fn lost(&self) -> u64;
}
