//! System calls for devices, packet sockets and threads for which no safe wrapper exists.
#![expect(
    unsafe_code,
    reason = "ioctl, packet sockets, unshare, sched_setattr and sigaction have no safe wrapper"
)]

use rustix::io;
use rustix::ioctl::{self, IntegerSetter, Setter};
use rustix::thread::UnshareFlags;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::ring::{Ring, Size, tag};
use super::socket::{last, set_option};
use crate::wire::VNET_HEADER;

/// Request numbers of `linux/if_tun.h`: `_IOW('T', nr, int)`.
const TUNSETIFF: ioctl::Opcode = ioctl::opcode::write::<libc::c_int>(b'T', 202);
const TUNSETOFFLOAD: ioctl::Opcode = ioctl::opcode::write::<libc::c_uint>(b'T', 208);

/// `struct ifreq` of `linux/if.h`, as far as TUNSETIFF uses it.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

/// Turns the open `/dev/net/tun` into the device `name` (at most 15 bytes) with these `IFF_` flags.
pub fn tun_set_interface(tun: BorrowedFd<'_>, name: &str, flags: i32) -> io::Result<()> {
    let mut request = InterfaceRequest {
        name: [0; libc::IFNAMSIZ],
        flags: flags as libc::c_short,
        rest: [0; 22],
    };
    if name.len() >= libc::IFNAMSIZ {
        return Err(io::Errno::NAMETOOLONG);
    }
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: TUNSETIFF takes a `struct ifreq`, whose size and layout this is (40 bytes); the
    // kernel writes the chosen name back into our own copy, which outlives the call.
    unsafe { ioctl::ioctl(tun, Setter::<TUNSETIFF, InterfaceRequest>::new(request)) }
}

/// Tells the kernel which offloads (`TUN_F_`) the reader of the device supports.
pub fn tun_set_offload(tun: BorrowedFd<'_>, offloads: u32) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its argument by value; no memory is shared.
    unsafe {
        ioctl::ioctl(
            tun,
            IntegerSetter::<TUNSETOFFLOAD>::new_usize(offloads as usize),
        )
    }
}

/// A socket for the frames that the device `index` receives, but not for those it sends. Each frame is preceded by a
/// virtio header (`PACKET_VNET_HDR`, packet(7)).
pub fn packet_socket(index: u32) -> io::Result<OwnedFd> {
    let socket = frame_socket()?;
    bind_packet_socket(&socket, index)?;
    Ok(socket)
}

/// The same with a ring, which holds the frames that fit into a slot and announces all of them. The ring is `None` if
/// the kernel has no memory for it.
pub fn ringed_socket(index: u32, together: usize) -> io::Result<(OwnedFd, Option<Ring>)> {
    let socket = frame_socket()?;
    // SAFETY: an int.
    unsafe { set_option(&socket, libc::SOL_PACKET, PACKET_COPY_THRESH, &1)? };
    let ring = Ring::of(&socket, frames(together)).ok();
    bind_packet_socket(&socket, index)?;
    Ok((socket, ring))
}

/// The ring of one of several interfaces. A slot holds a frame of 1500 bytes with tags. Up to four rings have 16 MiB
/// each: 80 ms at 100 000 frames per second. More rings share 64 MiB, because the kernel cannot swap them out, but none
/// has less than 1 MiB.
fn frames(together: usize) -> Size {
    const MOST: usize = 8192;
    const LEAST: usize = 512;
    Size {
        place: 2048,
        places: (4 * MOST / together.max(4))
            .next_multiple_of(LEAST)
            .min(MOST),
        before: VNET_HEADER,
    }
}

fn frame_socket() -> io::Result<OwnedFd> {
    let socket = new_packet_socket(libc::SOCK_RAW)?;
    for (level, option, value, needed) in [
        (libc::SOL_PACKET, PACKET_VNET_HDR, 1, true),
        (libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, true),
        (libc::SOL_PACKET, libc::PACKET_AUXDATA, 1, true),
        (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1, false),
        (libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1, false),
        // Exceeding the machine's limit needs a privilege.
        (libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER, false),
        (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER, false),
        (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, BUFFER, false),
    ] {
        // SAFETY: all of these are ints.
        let answer = unsafe { set_option(&socket, level, option, &value) };
        if needed {
            answer?;
        }
    }
    Ok(socket)
}

/// A packet socket of this kind. It has no protocol yet, so it receives nothing from any device.
pub(super) fn new_packet_socket(kind: libc::c_int) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: only numbers are passed.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(last());
    }
    // SAFETY: the descriptor was just created and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A socket that sends complete IP packets through the device of this name. The kernel resolves the neighbour
/// (raw(7), ipv6(7)).
pub(crate) fn raw_socket(v6: bool, device: &str) -> io::Result<OwnedFd> {
    let family = if v6 { libc::AF_INET6 } else { libc::AF_INET };
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: only numbers are passed.
    let fd = unsafe { libc::socket(family, kind, libc::IPPROTO_RAW) };
    if fd < 0 {
        return Err(last());
    }
    // SAFETY: the descriptor was just created and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut name = [0u8; libc::IFNAMSIZ];
    let bytes = device
        .as_bytes()
        .get(..name.len() - 1)
        .unwrap_or(device.as_bytes());
    name[..bytes.len()].copy_from_slice(bytes);
    // SAFETY: the option is a zero-terminated name of at most `IFNAMSIZ` bytes; the other one is an int.
    unsafe {
        set_option(&socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, &name)?;
        let _ = set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &BUFFER);
    }
    Ok(socket)
}

/// Binds the socket to the packets of the device `index`.
pub(super) fn bind_packet_socket(socket: &OwnedFd, index: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as u32;
    // SAFETY: the address lives during the call, and the length is that of the address.
    let answer = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if answer < 0 { Err(last()) } else { Ok(()) }
}

/// A frame that was read, preceded by a virtio header.
pub struct Received {
    /// Length of both together.
    pub length: usize,
    /// The VLAN tag that the kernel removed from the frame: protocol and control information (IEEE 802.1Q).
    pub tag: Option<[u8; 4]>,
    /// Arrival time in nanoseconds since the Unix epoch.
    pub stamp: Option<u64>,
}

/// Reads from a [`packet_socket`].
pub fn receive_frame(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    /// Space for both control messages with their headers, suitably aligned.
    #[repr(align(8))]
    struct Control([u8; 128]);
    let mut control = Control([0; 128]);
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: all zeros is a message without parts.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    // SAFETY: the message points to one buffer and one piece of memory for control messages, with their lengths. Both
    // outlive the call.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let Ok(length) = usize::try_from(length) else {
        return Err(last());
    };
    let mut received = Received {
        length,
        tag: None,
        stamp: None,
    };
    // SAFETY: the kernel filled the message, and the memory that it points to still exists.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !next.is_null() {
        // SAFETY: the macros return a pointer into the control messages only if a whole header is present. Data is
        // read unaligned, and only with the type that the kernel writes for this level and kind.
        unsafe {
            let header = next.read_unaligned();
            let data = libc::CMSG_DATA(next);
            match (header.cmsg_level, header.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let at = data.cast::<libc::timespec>().read_unaligned();
                    received.stamp = Some(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64);
                }
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                    let data = data.cast::<libc::tpacket_auxdata>().read_unaligned();
                    received.tag = tag(data.tp_status, data.tp_vlan_tci, data.tp_vlan_tpid);
                }
                _ => {}
            }
            next = libc::CMSG_NXTHDR(&raw const message, next);
        }
    }
    Ok(received)
}

/// Puts the device into promiscuous mode (packet(7), `PACKET_MR_PROMISC`) until the socket is closed.
pub fn see_everything(socket: &OwnedFd, index: u32) -> io::Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: index as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    // SAFETY: this is the type of the option.
    unsafe {
        set_option(
            socket,
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            &request,
        )
    }
}

/// Frames that a packet socket dropped for lack of space since the last call.
pub fn packet_drops(socket: BorrowedFd<'_>) -> io::Result<u64> {
    // `struct tpacket_stats` of linux/if_packet.h: packets, drops.
    let mut counted = [0u32; 2];
    let mut length = size_of_val(&counted) as u32;
    // SAFETY: the kernel writes at most `length` bytes into the array.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut counted).cast(),
            &raw mut length,
        )
    };
    if answer < 0 {
        return Err(last());
    }
    Ok(u64::from(counted[1]))
}

/// From linux/if_packet.h.
const PACKET_COPY_THRESH: libc::c_int = 7;
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// Buffer size of a packet socket in bytes, enough for a stall of a busy machine at 1 Gbit/s.
const BUFFER: libc::c_int = 32 << 20;

/// Gives the calling thread new namespaces.
pub fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: only unsharing the table of file descriptors is unsafe, and that is not requested here.
    unsafe { rustix::thread::unshare_unsafe(flags - UnshareFlags::FILES) }
}

/// Lets the kernel reap children that end (sigaction(2): SIGCHLD ignored).
pub fn reap_automatically() {
    // SAFETY: SIG_IGN installs no handler, so no code of ours runs in signal context.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// `struct sched_attr` of `linux/sched/types.h`, its first version.
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Gives the calling thread SCHED_FIFO with this priority. Threads and programs that it starts do not inherit it.
pub fn schedule_fifo(priority: u32) -> io::Result<()> {
    sched_setattr(SchedAttr {
        policy: libc::SCHED_FIFO as u32,
        flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        priority,
        ..SchedAttr::default()
    })
}

/// Requests slices of `nanos` from the fair scheduler for the calling thread (Linux 6.12 and later; older kernels
/// ignore it).
pub fn schedule_slice(nanos: u64) -> io::Result<()> {
    sched_setattr(SchedAttr {
        policy: libc::SCHED_OTHER as u32,
        flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        runtime: nanos,
        ..SchedAttr::default()
    })
}

fn sched_setattr(mut attr: SchedAttr) -> io::Result<()> {
    attr.size = size_of::<SchedAttr>() as u32;
    // SAFETY: the kernel reads `size` bytes from `attr`, which lives until the call returns. Thread 0 is the calling
    // one.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    if answer == 0 { Ok(()) } else { Err(last()) }
}

/// The slice in nanoseconds that the fair scheduler grants the calling thread, as it reads back.
pub fn slice() -> io::Result<u64> {
    let mut attr = SchedAttr::default();
    // SAFETY: the kernel writes at most the given size into `attr`.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            0,
            &raw mut attr,
            size_of::<SchedAttr>(),
            0,
        )
    };
    if answer == 0 {
        Ok(attr.runtime)
    } else {
        Err(last())
    }
}
