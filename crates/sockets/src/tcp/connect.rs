//! Opening connections: listeners, connecting, accepting, and socket options.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, EventFlags};
use rustix::io::{Errno, Result};
use rustix::net::{
    SocketFlags, SocketType, acceptfrom_with, bind, connect, getsockname, listen, sockopt,
};
use swell_base::{Dur, End, Side};
use swell_host::sys::tcp as sys;
use swell_workload::{Conn, Event, Info, Open};

use crate::carrier::{Carrier, LISTENER, Wake};
use crate::settings::{Settings, cap_window, set_segment};
use crate::side::family;
use crate::slots::{Kind, Listener, bits};

/// Maximum number of pending handshakes; the kernel caps it at `net.core.somaxconn`, 4096 by default.
const BACKLOG: i32 = 4096;
/// After this many connection attempts the pending ones are accepted. A workload may start thousands at one instant,
/// and over loopback they are all complete before the next `epoll_wait`.
const BURST: u32 = 512;
/// Delay before accepting again after running out of descriptors.
const RETRY: Dur = Dur::from_millis(100);
/// Maximum number of accepts before others get their turn.
const ACCEPTS: u32 = 64;

impl Carrier {
    pub(crate) fn connect(&mut self, worker: u32, conn: Conn, open: &Open) {
        let Some((slot, addresses)) = self.begin(Kind::Tcp, worker, conn, open) else {
            self.post(worker, Event::Reset(conn, End::Client));
            self.post(worker, Event::Closed(conn, Info::default()));
            return;
        };
        self.counts.connections += 1;
        let own = self.workers[worker as usize].settings.window.unwrap_or(0);
        let asked = [open.client_window, open.server_window];
        self.slots.at(slot).caps = asked.map(|cap| if cap == 0 { own } else { cap });
        match self.start(slot, addresses, open) {
            Ok(()) => {}
            Err(error) => {
                self.failed(error);
                self.lost(slot, End::Client);
            }
        }
    }

    fn start(&mut self, slot: u32, [from, to]: [IpAddr; 2], open: &Open) -> Result<()> {
        let s = self.slots.peek(slot);
        let (worker, client_side) = (s.worker, s.client_side);
        let index = self.listener(worker, client_side.other(), to.is_ipv6())?;
        let port = self.listeners[index as usize].port;
        let side = &mut self.sides[client_side];
        let socket = side.sockets.socket(family(from), SocketType::STREAM)?;
        let fd = socket.as_fd();
        let settings = &self.workers[worker as usize].settings;
        settings.apply(fd)?;
        tailor(fd, settings, open)?;
        prepare(fd)?;
        sys::port_at_connect(fd)?;
        if from.is_ipv6() {
            sockopt::set_ipv6_freebind(fd, true)?;
        }
        bind(fd, &SocketAddr::new(from, 0))?;
        match connect(fd, &SocketAddr::new(to, port)) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        let local = SocketAddr::try_from(getsockname(fd)?)?;
        self.slots.at(slot).port = local.port();
        // The kernel does not assign the same port twice for a pair of addresses.
        self.waiting.insert((plain(local), to), slot);
        self.watch(fd, slot, End::Client)?;
        self.slots.at(slot).ends[0].fd = Some(socket);
        self.listeners[index as usize].begun += 1;
        if self.listeners[index as usize].begun >= BURST {
            self.accept(LISTENER | u64::from(index));
        }
        Ok(())
    }

    /// Registers a socket edge-triggered. With level triggering, an end that has seen the peer's close would report
    /// events endlessly, and waiting for buffer space would need a system call each time.
    pub(crate) fn watch(&self, fd: BorrowedFd<'_>, slot: u32, end: End) -> Result<()> {
        let what = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let token = epoll::EventData::new_u64(self.slots.token(slot, end));
        epoll::add(&self.epoll, fd, token, what)
    }

    /// The listening socket for servers of `worker` on `side`, created on first use.
    fn listener(&mut self, worker: u32, side: Side, ipv6: bool) -> Result<u32> {
        let place = (side as usize, usize::from(ipv6));
        if let Some(index) = self.workers[worker as usize].listeners[place.0][place.1] {
            return Ok(index);
        }
        let any: IpAddr = if ipv6 {
            Ipv6Addr::UNSPECIFIED.into()
        } else {
            Ipv4Addr::UNSPECIFIED.into()
        };
        let state = &mut self.sides[place.0];
        let socket = state.sockets.socket(family(any), SocketType::STREAM)?;
        let fd = socket.as_fd();
        if ipv6 {
            sockopt::set_ipv6_v6only(fd, true)?;
        }
        if let Some(device) = &state.device {
            sys::bind_to_device(fd, device)?;
        }
        // Accepted sockets inherit these options.
        self.workers[worker as usize].settings.apply(fd)?;
        prepare(fd)?;
        bind(fd, &SocketAddr::new(any, 0))?;
        listen(fd, BACKLOG)?;
        let index = self.listeners.len() as u32;
        let token = epoll::EventData::new_u64(LISTENER | u64::from(index));
        epoll::add(&self.epoll, fd, token, EventFlags::IN | EventFlags::ET)?;
        let port = SocketAddr::try_from(getsockname(fd)?)?.port();
        self.listeners.push(Listener {
            fd: socket,
            port,
            begun: 0,
        });
        self.workers[worker as usize].listeners[place.0][place.1] = Some(index);
        Ok(index)
    }

    /// Accepts connections whose handshake is complete.
    pub(crate) fn accept(&mut self, token: u64) {
        let index = (token & !LISTENER) as usize;
        let mut left = ACCEPTS;
        if let Some(listener) = self.listeners.get_mut(index) {
            // A burst is accepted as a whole.
            left = left.max(listener.begun);
            listener.begun = 0;
        }
        while let Some(listener) = self.listeners.get(index) {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match acceptfrom_with(&listener.fd, flags) {
                Ok((socket, peer)) => {
                    let peer = peer.and_then(|p| SocketAddr::try_from(p).ok());
                    self.accepted(socket, peer);
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                    self.counts.without_descriptors += 1;
                    // Without the reserve descriptor, connections in the queue would wait forever. So they are
                    // accepted and reset.
                    if !self.descriptors.refuse(listener.fd.as_fd()) {
                        self.queue.push(self.at + RETRY, Wake::Accept(token));
                        return;
                    }
                }
                // The error concerns only that connection (accept(2), "Error handling").
                Err(_) => {}
            }
            left -= 1;
            if left == 0 {
                self.ready.push_back(token);
                return;
            }
        }
    }

    fn accepted(&mut self, socket: OwnedFd, peer: Option<SocketAddr>) {
        let fd = socket.as_fd();
        let local = getsockname(fd)
            .ok()
            .and_then(|a| SocketAddr::try_from(a).ok());
        let (Some(peer), Some(local)) = (peer, local) else {
            self.counts.strangers += 1;
            return;
        };
        let Some(slot) = self.waiting.remove(&(plain(peer), local.ip())) else {
            self.counts.strangers += 1;
            return;
        };
        if self.slots.peek(slot).ends[0].has(bits::DEAD) {
            // Aborted before it was accepted.
            self.over(slot);
            return;
        }
        // A connection is accepted only after the client completed the handshake.
        self.connected(slot, End::Client);
        let (cap, worker) = (self.slots.peek(slot).caps[1], self.slots.peek(slot).worker);
        let settings = &self.workers[worker as usize].settings;
        if let Err(error) = settings
            .choose(fd)
            .and_then(|()| self.watch(fd, slot, End::Server))
        {
            self.failed(error);
            self.slots.at(slot).ends[1].fd = Some(socket);
            self.lost(slot, End::Server);
            return;
        }
        if cap != 0 && cap_window(fd, cap).is_err() {
            self.counts.windows_not_capped += 1;
        }
        self.slots.at(slot).ends[1].fd = Some(socket);
        self.connected(slot, End::Server);
    }

    pub(crate) fn connected(&mut self, slot: u32, end: End) {
        let s = self.slots.at(slot);
        let half = &mut s.ends[end];
        if half.has(bits::CONNECTED | bits::DEAD) {
            return;
        }
        half.set(bits::CONNECTED);
        let (worker, conn) = (s.worker, s.conn);
        if let Some(fd) = half.socket()
            && !s.silent
            && sys::report_acknowledgements(fd).is_err()
        {
            self.counts.acknowledgements_by_looking += 1;
        }
        self.post(worker, Event::Connected(conn, end));
        self.flush(slot, end);
    }
}

/// Sets the common option of connection sockets: closing an open one resets it, also when the process dies.
fn prepare(fd: BorrowedFd<'_>) -> Result<()> {
    sockopt::set_socket_linger(fd, Some(Duration::ZERO))
}

/// Undoes [`prepare`] for a connection that both ends have closed. An end that waits for the acknowledgement of its FIN
/// would otherwise be gone when it comes, and the kernel would answer with a reset.
pub(super) fn let_end(fd: BorrowedFd<'_>) {
    // If this fails, the connection ends with the reset.
    let _ = sockopt::set_socket_linger(fd, None);
}

/// Sets the options specific to this connection.
fn tailor(fd: BorrowedFd<'_>, settings: &Settings, open: &Open) -> Result<()> {
    let asked = open.wire.ends.map(|end| u32::from(end.mss));
    // The client's cap is also announced to the server, so one value serves both directions.
    let mss = asked[0].max(asked[1]);
    if mss != 0 {
        let timestamps = open.wire.timestamps.unwrap_or(settings.timestamps);
        set_segment(fd, mss, timestamps)?;
    }
    match open.client_window {
        0 => Ok(()),
        bytes => cap_window(fd, bytes),
    }
}

/// The address without scope and flow label.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), address.port())
}
