//! Users, sessions and request-response groups (Swing, section III: Vishwanath & Vahdat).
//!
//! A user is a client host in one application class. A connection belongs to the user's current group if
//! it starts within the group time-out of that group's last activity. Otherwise it opens a new group, and
//! after a silence longer than the session time-out a new session. "Activity" is data or the handshake.
//! A group is split where all its connections before are over: who opens one connection after the other waits for each.
//! Swing has only the time-out. But at fixed times after each other, such connections would pile up on a slower link.
//! Swing takes the FIN instead, but a server that keeps an idle connection open for a minute does not mean
//! a busy user. A replayed group ends with its last data, too. If data pass on a connection after the next
//! group has begun, [`Connection::overlap`] records the connection's progress at that time. A replay then
//! waits for no more than that.

use swell_base::Dur;
use swell_traffic::{Connection, Exchange, Group, Session};

use crate::chunks::{Dues, RECENT, micros};
use crate::index::Index;

pub(crate) use periods::Talk;

mod periods;

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

/// Delays in the pauses of a session, which are not the user's: how long after the last data before each a user would be
/// heard that answers at once. In microseconds; 0 if unknown, and empty if all are.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    /// Before each group.
    pub(crate) groups: Vec<u32>,
    /// By connection, in their order: those of its turns.
    pub(crate) turns: Vec<Vec<Dues>>,
}

#[derive(Debug)]
struct PendingGroup {
    think: u64,
    /// How long an answer took before it, nanoseconds; 0 if unknown.
    due: u64,
    connections: Vec<PendingConnection>,
}

#[derive(Debug)]
struct PendingConnection {
    talk: Talk,
    start: u64,
    /// Its last activity.
    last: u64,
    /// `None` while open, and for strays.
    ended: Option<Connection>,
}

#[derive(Clone, Copy, Debug)]
struct User {
    session: u32,
    /// Serial number of the user's current group.
    group_serial: u32,
    last_activity: u64,
    /// How long the latest answer took on a connection of the group, and when it came, nanoseconds; 0 if unknown.
    due: (u64, u64),
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
    pub(crate) fn new(group_timeout: Dur, session_timeout: Dur, items: usize) -> Users {
        Users {
            most: u32::try_from((items / 4).max(LEAST_HELD)).unwrap_or(u32::MAX),
            index: Index::new(),
            users: Vec::new(),
            free_users: Vec::new(),
            sessions: Vec::new(),
            free: Vec::new(),
            cursor: 0,
            group_timeout: group_timeout.as_nanos(),
            session_timeout: session_timeout.as_nanos(),
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
        done: &mut impl FnMut(Session, Delays),
    ) -> ConnectionIndex {
        let key = (client, class);
        let user = match self.index.get(&key) {
            Some(u) => u,
            None => {
                let fresh = User {
                    session: u32::MAX,
                    group_serial: 0,
                    last_activity: at,
                    due: (0, 0),
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
            state.due = (0, 0);
            state.group_serial = state.group_serial.wrapping_add(1);
        } else if silence > self.group_timeout {
            // An old answer does not tell of the queue that the last data waited in.
            let (due, since) = state.due;
            let recent = state.last_activity.saturating_sub(since) <= RECENT;
            let due = if recent { due } else { 0 };
            if let Some(s) = self.pending(state.session) {
                s.groups.push(PendingGroup {
                    think: silence,
                    due,
                    connections: Vec::new(),
                });
            }
            state.due = (0, 0);
            state.group_serial = state.group_serial.wrapping_add(1);
        }
        state.last_activity = state.last_activity.max(at);
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
                g.connections.push(PendingConnection {
                    start: at,
                    last: at,
                    ended: None,
                    talk: Talk::default(),
                });
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

    /// The client has answered on the connection at `place` after `due` nanoseconds.
    #[inline]
    pub(crate) fn answered(&mut self, place: ConnectionIndex, due: u64, at: u64) {
        if self.current(place) {
            self.users[place.user as usize].due = (due, at);
        }
    }

    /// Notes when something was under way on the connection at `place`, which is about to end.
    pub(crate) fn talked(&mut self, place: ConnectionIndex, talk: Talk) {
        let items = talk.items();
        let Some(s) = self.pending(place.session) else {
            return;
        };
        let group = s.groups.get_mut(place.group as usize);
        if let Some(slot) = group.and_then(|g| g.connections.get_mut(place.connection as usize)) {
            slot.talk = talk;
            self.items += items;
        }
    }

    /// Ends the connection at `place` that was last active at `last`; `None` discards it.
    pub(crate) fn end(
        &mut self,
        place: ConnectionIndex,
        connection: Option<Connection>,
        last: u64,
        done: &mut impl FnMut(Session, Delays),
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
            slot.ended = connection;
            slot.last = slot.last.max(last);
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
    pub(crate) fn tick(&mut self, now: u64, done: &mut impl FnMut(Session, Delays)) {
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
    pub(crate) fn finish(&mut self, done: &mut impl FnMut(Session, Delays)) {
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
                due: 0,
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

    fn close(&mut self, session: u32, done: &mut impl FnMut(Session, Delays)) {
        if let Some(s) = self.pending(session) {
            s.closed = true;
            if s.open == 0 {
                self.emit(session, done);
            }
        }
    }

    fn emit(&mut self, session: u32, done: &mut impl FnMut(Session, Delays)) {
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
        let mut ended = 0;
        let mut talks: Vec<Talk> = Vec::new();
        let mut delays = Delays::default();
        let mut push = |connections, pause: &mut Dur, due: u64| {
            let mut pause = std::mem::take(pause);
            if groups.is_empty() {
                start += std::mem::take(&mut pause);
            }
            delays.groups.push(micros(due));
            groups.push(Group {
                think: pause,
                connections,
            });
        };
        for g in p.groups {
            think += Dur::from_nanos(g.think);
            let mut lead = Dur::ZERO;
            let mut before = None;
            // The last activity of the group so far, and how long an answer took then.
            let mut last = 0;
            let (mut due, mut answer) = (g.due, 0);
            let mut connections: Vec<Connection> = Vec::with_capacity(g.connections.len());
            for slot in g.connections {
                lead += Dur::from_nanos(slot.start - before.unwrap_or(slot.start));
                before = Some(slot.start);
                self.items -= slot.talk.items();
                let Some(mut c) = slot.ended else {
                    continue;
                };
                self.items -= c.items();
                let waits = !matches!(c.exchange, Exchange::Datagrams(_));
                if waits && !connections.is_empty() && slot.start > last {
                    push(std::mem::take(&mut connections), &mut think, due);
                    due = answer;
                    think = Dur::from_nanos(slot.start - last);
                    lead = Dur::ZERO;
                }
                let lead = std::mem::take(&mut lead);
                if connections.is_empty() {
                    think += lead;
                    c.gap = Dur::ZERO;
                } else {
                    c.gap = lead;
                }
                if slot.last >= last {
                    (last, answer) = (slot.last, slot.talk.due);
                }
                ended = ended.max(last);
                let mut talk = slot.talk;
                talk.leads = connections.is_empty();
                delays.turns.push(std::mem::take(&mut talk.dues));
                talks.push(talk);
                connections.push(c);
            }
            match connections.is_empty() {
                true => think += lead,
                false => push(connections, &mut think, due),
            }
        }
        let all = groups.iter_mut().flat_map(|g| &mut g.connections);
        for (c, waits) in all.zip(periods::waits(&talks)) {
            c.waits = waits;
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
            let whole = Session {
                class: u32::from(p.class),
                start,
                weight: 1.0,
                client: p.client,
                outside: false,
                lasted: Some(Dur::from_nanos(ended).saturating_sub(start)),
                groups,
            };
            done(whole, delays);
        }
    }
}

#[cfg(test)]
mod tests;
