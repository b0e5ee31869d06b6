//! Users, sessions and request-response groups (Swing, section III: Vishwanath & Vahdat).
//!
//! A user is a client host in one application class. A connection belongs to the user's current group if
//! it starts within the group time-out of that group's last activity, while the user still waits for an answer.
//! Otherwise it opens a new group, and after a silence longer than the session time-out a new session.
//! "Activity" is data or the handshake.
//! A user waits as long as a connection of the group is open whose client has sent last, or has received data a moment
//! ago ([`Phase`]). Swing has only the time-out. But who opens one connection after the other waits for each: at fixed
//! times after each other they would pile up on a slower link.
//! Swing takes the FIN instead, but a server that keeps an idle connection open for a minute does not mean
//! a busy user. A replayed group ends with its last data, too. If data pass on a connection after the next
//! group has begun, [`Connection::overlap`] records the connection's progress at that time. A replay then
//! waits for no more than that.

use swell_base::Dur;
use swell_traffic::{Connection, Group, Parameters, Session};

use crate::index::Index;

/// Lower bound of the number of connections that a session may hold.
const LEAST_HELD: usize = 2_000;

/// Position of a connection in its session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionIndex {
    session: u32,
    group: u32,
    connection: u32,
    user: u32,
    group_serial: u32,
}

/// What the user expects from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// An answer: it has just begun, or the client has sent data last.
    Asked,
    /// Perhaps more: the server has sent data last.
    Answered,
    /// Nothing: an end has closed it.
    Over,
}

impl Phase {
    /// After a packet from end `from` (0 client, 1 server), that carries data or not.
    #[must_use]
    pub(crate) fn after(self, from: usize, data: bool) -> Phase {
        match (self, data) {
            (Phase::Over, _) | (_, false) => self,
            (_, true) if from == 0 => Phase::Asked,
            (_, true) => Phase::Answered,
        }
    }
}

#[derive(Debug)]
struct Pending {
    class: u8,
    client: u32,
    /// Serial number of the session.
    serial: u64,
    start: u64,
    groups: Vec<PendingGroup>,
    /// Number of open connections.
    open: u32,
    connections: u32,
    /// Whether no further connection will join.
    closed: bool,
}

#[derive(Debug)]
struct PendingGroup {
    think: u64,
    /// Gap to the previous connection, and the finished connection; `None` while open, and for strays.
    connections: Vec<(u64, Option<Connection>)>,
}

#[derive(Clone, Copy, Debug)]
struct User {
    session: u32,
    /// Serial number of the user's current group.
    group_serial: u32,
    last_activity: u64,
    last_start: u64,
    /// Connections of the group that are in the first phase, and in the second.
    open: [u32; 2],
    key: (u32, u8),
    idle: bool,
}

/// Current sessions.
#[derive(Debug)]
pub(crate) struct Users {
    index: Index<(u32, u8)>,
    users: Vec<User>,
    free_users: Vec<u32>,
    sessions: Vec<Option<Pending>>,
    free: Vec<u32>,
    cursor: usize,
    group_timeout: u64,
    session_timeout: u64,
    /// After a longer silence, an answer is over.
    quiet: u64,
    /// A session is cut at this number of connections, so that a resolver or a proxy that never rests
    /// needs bounded memory. A replay draws the start times of the pieces separately, which adds bursts.
    /// So the limit is high enough that a session that fits into the model is not cut.
    most: u32,
    /// Number of sessions begun.
    begun: u64,
    /// Number of sessions cut at `most`.
    pub(crate) cut: u64,
    /// Number of items in the finished connections of current sessions.
    pub(crate) items: usize,
}

impl Users {
    /// A session may hold at most a quarter of the model's `items`.
    pub(crate) fn new(p: &Parameters, items: usize) -> Users {
        Users {
            most: u32::try_from((items / 4).max(LEAST_HELD)).unwrap_or(u32::MAX),
            index: Index::new(),
            users: Vec::new(),
            free_users: Vec::new(),
            sessions: Vec::new(),
            free: Vec::new(),
            cursor: 0,
            group_timeout: p.group_timeout.as_nanos(),
            session_timeout: p.session_timeout.as_nanos(),
            quiet: p.quiet.as_nanos(),
            begun: 0,
            cut: 0,
            items: 0,
        }
    }

    /// Serial number of the session at `place`.
    pub(crate) fn serial(&mut self, place: ConnectionIndex) -> u64 {
        self.pending(place.session).map_or(0, |s| s.serial)
    }

    /// Makes `client` the client of the session at `place`.
    pub(crate) fn measured(&mut self, place: ConnectionIndex, client: u32) {
        if let Some(s) = self.pending(place.session) {
            s.client = client;
        }
    }

    /// Begins a connection of `client` in `class` at `at`. A session that ends because of it goes to
    /// `done`.
    pub(crate) fn begin(
        &mut self,
        client: u32,
        class: u8,
        at: u64,
        done: &mut impl FnMut(Session),
    ) -> ConnectionIndex {
        let key = (client, class);
        let user = match self.index.get(&key) {
            Some(u) => u,
            None => {
                let fresh = User {
                    session: u32::MAX,
                    group_serial: 0,
                    last_activity: at,
                    last_start: at,
                    open: [0; 2],
                    key,
                    idle: false,
                };
                let u = match self.free_users.pop() {
                    Some(u) => {
                        self.users[u as usize] = fresh;
                        u
                    }
                    None => {
                        self.users.push(fresh);
                        self.users.len() as u32 - 1
                    }
                };
                self.index.insert(key, u);
                u
            }
        };
        let mut state = self.users[user as usize];
        let silence = at.saturating_sub(state.last_activity);
        let most = self.most;
        let full = self
            .pending(state.session)
            .is_some_and(|s| s.connections >= most);
        if full || state.session == u32::MAX || silence > self.session_timeout {
            // After a silence the session would have ended anyway.
            self.cut += u64::from(full && silence <= self.session_timeout);
            self.close(state.session, done);
            state.session = self.open(class, client, at);
            state.group_serial = state.group_serial.wrapping_add(1);
            state.last_start = at;
            state.open = [0; 2];
        } else if silence > self.group_timeout
            || state.open == [0, 0]
            || state.open[0] == 0 && silence > self.quiet
        {
            if let Some(s) = self.pending(state.session) {
                s.groups.push(PendingGroup {
                    think: silence,
                    connections: Vec::new(),
                });
            }
            state.group_serial = state.group_serial.wrapping_add(1);
            state.last_start = at;
            state.open = [0; 2];
        }
        let gap = at.saturating_sub(state.last_start);
        state.last_start = at;
        state.last_activity = state.last_activity.max(at);
        state.open[0] += 1;
        self.users[user as usize] = state;
        let mut place = ConnectionIndex {
            session: state.session,
            group: 0,
            connection: 0,
            user,
            group_serial: state.group_serial,
        };
        if let Some(s) = self.pending(state.session) {
            s.open += 1;
            s.connections += 1;
            place.group = s.groups.len() as u32 - 1;
            if let Some(g) = s.groups.last_mut() {
                place.connection = g.connections.len() as u32;
                g.connections.push((gap, None));
            }
        }
        place
    }

    /// Whether the connection at `place` belongs to the user's current group.
    #[inline]
    pub(crate) fn current(&self, place: ConnectionIndex) -> bool {
        let u = &self.users[place.user as usize];
        u.session == place.session && u.group_serial == place.group_serial
    }

    /// Notes activity of the connection at `place`.
    #[inline]
    pub(crate) fn active(&mut self, place: ConnectionIndex, at: u64) {
        if self.current(place) {
            let u = &mut self.users[place.user as usize];
            u.last_activity = u.last_activity.max(at);
        }
    }

    /// Moves the connection at `place` from one phase to another.
    #[inline]
    pub(crate) fn moves(&mut self, place: ConnectionIndex, phase: &mut Phase, to: Phase) {
        let from = std::mem::replace(phase, to);
        if from == to || !self.current(place) {
            return;
        }
        let open = &mut self.users[place.user as usize].open;
        for (number, one) in open.iter_mut().zip([Phase::Asked, Phase::Answered]) {
            *number += u32::from(to == one);
            *number -= u32::from(from == one);
        }
    }

    /// Ends the connection at `place`; `None` discards it.
    pub(crate) fn end(
        &mut self,
        place: ConnectionIndex,
        connection: Option<Connection>,
        done: &mut impl FnMut(Session),
    ) {
        let Some(s) = self.pending(place.session) else {
            return;
        };
        s.open -= 1;
        let mut items = 0;
        if let Some(slot) = s
            .groups
            .get_mut(place.group as usize)
            .and_then(|g| g.connections.get_mut(place.connection as usize))
        {
            items = connection.as_ref().map_or(0, Connection::items);
            slot.1 = connection;
        }
        let over = s.closed && s.open == 0;
        self.items += items;
        if over {
            self.emit(place.session, done);
        }
    }

    /// Checks the next user, round-robin. Ends the session if the user has been silent for longer than the
    /// session time-out and has no open connection.
    #[inline]
    pub(crate) fn tick(&mut self, now: u64, done: &mut impl FnMut(Session)) {
        if self.users.is_empty() {
            return;
        }
        self.cursor += 1;
        if self.cursor >= self.users.len() {
            self.cursor = 0;
        }
        let u = self.users[self.cursor];
        if u.idle || now.saturating_sub(u.last_activity) <= self.session_timeout {
            return;
        }
        if self.pending(u.session).is_some_and(|s| s.open > 0) {
            return;
        }
        self.close(u.session, done);
        self.index.remove(&u.key);
        self.users[self.cursor].idle = true;
        self.users[self.cursor].session = u32::MAX;
        self.free_users.push(self.cursor as u32);
    }

    /// Ends all sessions.
    pub(crate) fn finish(&mut self, done: &mut impl FnMut(Session)) {
        for i in 0..self.sessions.len() as u32 {
            if let Some(s) = self.pending(i) {
                s.open = 0;
                self.emit(i, done);
            }
        }
    }

    fn pending(&mut self, session: u32) -> Option<&mut Pending> {
        self.sessions.get_mut(session as usize)?.as_mut()
    }

    fn open(&mut self, class: u8, client: u32, start: u64) -> u32 {
        self.begun += 1;
        let pending = Some(Pending {
            class,
            client,
            serial: self.begun,
            start,
            groups: vec![PendingGroup {
                think: 0,
                connections: Vec::new(),
            }],
            open: 0,
            connections: 0,
            closed: false,
        });
        match self.free.pop() {
            Some(i) => {
                self.sessions[i as usize] = pending;
                i
            }
            None => {
                self.sessions.push(pending);
                self.sessions.len() as u32 - 1
            }
        }
    }

    fn close(&mut self, session: u32, done: &mut impl FnMut(Session)) {
        if let Some(s) = self.pending(session) {
            s.closed = true;
            if s.open == 0 {
                self.emit(session, done);
            }
        }
    }

    fn emit(&mut self, session: u32, done: &mut impl FnMut(Session)) {
        let Some(p) = self
            .sessions
            .get_mut(session as usize)
            .and_then(Option::take)
        else {
            return;
        };
        self.free.push(session);
        // Gaps and think times of discarded connections are added to the next one kept.
        let mut start = Dur::from_nanos(p.start);
        let mut think = Dur::ZERO;
        let mut groups: Vec<Group> = Vec::with_capacity(p.groups.len());
        for g in p.groups {
            think += Dur::from_nanos(g.think);
            let mut lead = Dur::ZERO;
            let mut connections: Vec<Connection> = Vec::with_capacity(g.connections.len());
            for (gap, connection) in g.connections {
                lead += Dur::from_nanos(gap);
                if let Some(mut c) = connection {
                    self.items -= c.items();
                    c.gap = if connections.is_empty() {
                        Dur::ZERO
                    } else {
                        lead
                    };
                    if connections.is_empty() {
                        think += lead;
                    }
                    lead = Dur::ZERO;
                    connections.push(c);
                }
            }
            if connections.is_empty() {
                think += lead;
                continue;
            }
            if groups.is_empty() {
                start += think;
                think = Dur::ZERO;
            }
            groups.push(Group {
                think: std::mem::take(&mut think),
                connections,
            });
        }
        // The last group has no successor, so overlap has no meaning there.
        for c in groups
            .last_mut()
            .into_iter()
            .flat_map(|g| &mut g.connections)
        {
            c.overlap = None;
        }
        if !groups.is_empty() {
            done(Session {
                class: u32::from(p.class),
                start,
                weight: 1.0,
                client: p.client,
                outside: false,
                groups,
            });
        }
    }
}

#[cfg(test)]
mod tests;
