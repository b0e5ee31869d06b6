//! State of connections and datagram flows.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use swell_base::{End, Side};
use swell_workload::Conn;

use swell_host::sys::tcp as sys;

/// State bits of an end.
pub(super) mod bits {
    /// The handshake is complete.
    pub const CONNECTED: u16 = 1;
    /// The other end's FIN was reported to the workload.
    pub const EOF: u16 = 1 << 1;
    /// The workload closed this end.
    pub const CLOSING: u16 = 1 << 2;
    /// The FIN is sent.
    pub const FIN_SENT: u16 = 1 << 3;
    /// Reset, refused, given up or aborted.
    pub const DEAD: u16 = 1 << 4;
    /// Data was sent whose acknowledgement must be reported.
    pub const DRAINING: u16 = 1 << 5;
    /// `DRAINING` was already set at the last periodic check.
    pub const STALE: u16 = 1 << 6;
    /// In the list of ends that have more to do.
    pub const READY: u16 = 1 << 7;
    /// A FIN was seen after data that is still to be read.
    pub const FIN_SEEN: u16 = 1 << 8;
    /// All data was read; the FIN must be reported next.
    pub const FIN_READ: u16 = 1 << 9;
    /// There may be more data to read.
    pub const MORE: u16 = 1 << 10;
}

/// A listening socket for a workload's servers on one side.
pub(super) struct Listener {
    pub fd: OwnedFd,
    pub port: u16,
    /// Connections started since the last `accept`.
    pub begun: u32,
}

/// One end of a connection or datagram flow.
#[derive(Debug, Default)]
pub(super) struct Half {
    pub fd: Option<OwnedFd>,
    pub state: u16,
    /// Bytes to send that the kernel has not accepted yet.
    pub pending: u64,
    /// Payload bytes that arrived.
    pub received: u64,
    /// Values read from the kernel when the socket was closed: retransmissions, minimum RTT in us.
    pub last: (u32, u32),
}

impl Half {
    pub fn has(&self, bit: u16) -> bool {
        self.state & bit != 0
    }

    pub fn set(&mut self, bit: u16) {
        self.state |= bit;
    }

    pub fn clear(&mut self, bit: u16) {
        self.state &= !bit;
    }

    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// Whether nothing more can happen at this end.
    pub fn is_over(&self) -> bool {
        self.has(bits::DEAD) || self.has(bits::EOF) && self.has(bits::FIN_SENT)
    }

    /// Retransmissions and minimum RTT in microseconds (`u32::MAX`: none).
    pub fn facts(&self) -> (u32, u32) {
        let now = self.socket().and_then(|fd| sys::facts(fd).ok());
        now.map_or(self.last, |f| (f.retransmissions, f.min_rtt))
    }

    /// Closes the socket. A connection that is not closed in both directions is reset.
    pub fn close(&mut self) {
        if self.has(bits::CONNECTED) {
            self.last = self.facts();
        }
        self.fd = None;
    }
}

/// The use of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Free,
    Tcp,
    Datagrams,
    /// A closed datagram flow, whose sockets absorb datagrams still in transit.
    Forgotten,
}

/// A connection or datagram flow, in a place that is reused.
#[derive(Debug)]
pub(super) struct Slot {
    pub kind: Kind,
    pub silent: bool,
    pub ipv6: bool,
    pub client_side: Side,
    /// Number of uses of the slot, to recognise a late event of an earlier use.
    pub generation: u32,
    pub worker: u32,
    pub conn: Conn,
    /// Number of datagrams sent by both ends.
    pub datagrams: u64,
    /// Caps on the receive windows of the two ends; 0 for none.
    pub caps: [u32; 2],
    /// The client's port.
    pub port: u16,
    /// Numbers of the two hosts in their pools.
    pub hosts: [u64; 2],
    pub ends: [Half; 2],
}

/// All slots, with a list of the free ones.
#[derive(Debug, Default)]
pub(super) struct Slots {
    all: Vec<Slot>,
    free: Vec<u32>,
}

impl Slots {
    /// Allocates a slot for a connection, with all other fields at their defaults.
    pub fn insert(&mut self, kind: Kind, worker: u32, conn: Conn) -> u32 {
        let slot = Slot {
            kind,
            silent: false,
            ipv6: false,
            datagrams: 0,
            client_side: Side::Left,
            generation: 0,
            worker,
            conn,
            caps: [0; 2],
            port: 0,
            hosts: [0; 2],
            ends: [NEW, NEW],
        };
        if let Some(i) = self.free.pop() {
            let old = &mut self.all[i as usize];
            let generation = old.generation.wrapping_add(1) & GENERATIONS;
            *old = Slot { generation, ..slot };
            return i;
        }
        self.all.push(slot);
        self.all.len() as u32 - 1
    }

    pub fn remove(&mut self, i: u32) {
        let slot = &mut self.all[i as usize];
        if slot.kind != Kind::Free {
            slot.kind = Kind::Free;
            slot.ends = [NEW, NEW];
            self.free.push(i);
        }
    }

    pub fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// The numbers of all slots, including free ones.
    pub fn numbers(&self) -> std::ops::Range<u32> {
        0..self.all.len() as u32
    }

    #[inline]
    pub fn at(&mut self, i: u32) -> &mut Slot {
        &mut self.all[i as usize]
    }

    #[inline]
    pub fn peek(&self, i: u32) -> &Slot {
        &self.all[i as usize]
    }

    /// The slot and end for which `token` was made, if the slot still holds that connection.
    #[inline]
    pub fn of(&self, token: u64) -> Option<(u32, End)> {
        let i = (token >> 1) as u32;
        let slot = self.all.get(i as usize)?;
        let same = u64::from(slot.generation) == token >> 33 && slot.kind != Kind::Free;
        same.then_some((i, End::of(token & 1 == 1)))
    }

    /// The token that identifies an end in kernel events.
    #[inline]
    pub fn token(&self, i: u32, end: End) -> u64 {
        u64::from(self.peek(i).generation) << 33 | u64::from(i) << 1 | end as u64
    }
}

/// Number of generations: 30 bits of a token, because one bit marks listeners.
const GENERATIONS: u32 = (1 << 30) - 1;

const NEW: Half = Half {
    fd: None,
    state: 0,
    pending: 0,
    received: 0,
    last: (0, u32::MAX),
};

/// The slot of each open connection of a workload, indexed by connection number. Closed connections are dropped from
/// the front.
#[derive(Debug, Default)]
pub(super) struct Window {
    first: u32,
    slots: VecDeque<u32>,
}

const CLOSED: u32 = u32::MAX;

impl Window {
    pub fn get(&self, conn: Conn) -> Option<u32> {
        let i = conn.0.checked_sub(self.first)?;
        self.slots.get(i as usize).copied().filter(|&s| s != CLOSED)
    }

    /// Records the slot of `conn`. Returns false if that number is already open.
    pub fn insert(&mut self, conn: Conn, slot: u32) -> bool {
        if self.slots.is_empty() {
            self.first = conn.0;
        }
        let Some(i) = conn.0.checked_sub(self.first) else {
            // Workloads number upwards, but connections of several sources may start out of order.
            for _ in conn.0..self.first {
                self.slots.push_front(CLOSED);
            }
            self.first = conn.0;
            self.slots[0] = slot;
            return true;
        };
        if self.slots.len() <= i as usize {
            self.slots.resize(i as usize + 1, CLOSED);
        }
        let free = self.slots[i as usize] == CLOSED;
        if free {
            self.slots[i as usize] = slot;
        }
        free
    }

    pub fn remove(&mut self, conn: Conn) {
        if let Some(i) = conn.0.checked_sub(self.first)
            && let Some(slot) = self.slots.get_mut(i as usize)
        {
            *slot = CLOSED;
        }
        while self.slots.front() == Some(&CLOSED) {
            self.slots.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_finds_what_is_open_and_forgets_the_rest() {
        let mut window = Window::default();
        let mut map = std::collections::BTreeMap::new();
        let mut rng = swell_base::Stream::new(1, "window");
        for n in 0..5_000u32 {
            if rng.chance(0.6) {
                assert!(window.insert(Conn(n), n * 2));
                map.insert(n, n * 2);
            }
            if rng.chance(0.5)
                && let Some(&gone) = map.keys().nth(rng.below(map.len() as u64) as usize)
            {
                map.remove(&gone);
                window.remove(Conn(gone));
            }
            let probe = rng.below(u64::from(n) + 3) as u32;
            assert_eq!(window.get(Conn(probe)), map.get(&probe).copied());
        }
        for n in map.keys() {
            window.remove(Conn(*n));
        }
        assert!(window.slots.is_empty());
        assert!(window.insert(Conn(9), 1) && window.insert(Conn(3), 2));
        assert!(!window.insert(Conn(3), 5), "it is open");
        assert_eq!(
            (window.get(Conn(3)), window.get(Conn(9))),
            (Some(2), Some(1))
        );
    }

    #[test]
    fn news_of_an_earlier_connection_in_a_slot_is_nobodys() {
        let mut slots = Slots::default();
        let i = slots.insert(Kind::Tcp, 0, Conn(0));
        let token = slots.token(i, End::Server);
        assert_eq!(slots.of(token), Some((i, End::Server)));
        slots.remove(i);
        assert_eq!(slots.of(token), None);
        assert_eq!(slots.insert(Kind::Tcp, 0, Conn(1)), i);
        assert_eq!(slots.of(token), None);
        assert_eq!(slots.len(), 1);
    }
}
