//! What one thread plays, and when.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use swell_base::{Dur, Time};
use swell_traffic::flowlevel::{Due, Share, Transfer};

use super::config::{Client, Target};
use super::datagrams::Source;
use super::flow::Outcome;
use super::plan::{SharedPlan, Traffic};
use super::table::Table;
use super::worker::Worker;

/// A session that waits for its transfers tries one that was left out or failed again after this.
const WITHHELD: Dur = Dur::from_millis(100);

/// What one thread plays.
pub(super) struct Playing {
    client: Client,
    traffic: Option<Box<dyn Traffic>>,
    /// Which traffic this is, counted: transfers of the one before it are none of its business.
    generation: u32,
    /// Connections that were kept, by session.
    idle: HashMap<u64, u64>,
    pub sources: Table<Source>,
    /// Transfers under way.
    under_way: u64,
    /// Connections so far, by which they take turns in code points and congestion controls.
    turn: u64,
}

/// Where a transfer goes.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    /// Place of the server in the run.
    pub server: u16,
    pub to: SocketAddr,
    /// `None` where the kernel chooses.
    pub from: Option<IpAddr>,
}

/// What a connection has that others may have otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub dscp: u8,
    /// Place among the run's congestion controls.
    pub congestion: u8,
}

impl Playing {
    pub fn new(client: &Client) -> Playing {
        Playing {
            client: client.clone(),
            traffic: None,
            generation: 0,
            idle: HashMap::new(),
            sources: Table::default(),
            under_way: 0,
            turn: 0,
        }
    }

    pub fn active(&self) -> u64 {
        self.traffic.as_ref().map_or(0, |t| t.active())
    }

    pub fn servers(&self) -> &[Target] {
        &self.client.servers
    }

    pub fn index(&self) -> u16 {
        self.client.index
    }

    /// Of all draws.
    pub fn seed(&self) -> u64 {
        self.client.plan.seed()
    }

    /// UDP port of a server.
    pub fn datagram_port(&self, server: u16) -> u16 {
        let server = self.client.servers.get(usize::from(server));
        server.map_or(0, |s| s.datagrams)
    }

    /// Whether connections stay for the next transfer.
    pub fn keeps(&self) -> bool {
        self.client.play.keep
    }

    /// Server, address and source of what goes between two hosts, by rank.
    pub fn ends(&self, source: u64, destination: u64) -> Ends {
        let servers = self.client.servers.len() as u64;
        let server = destination % servers.max(1);
        let target = &self.client.servers[server as usize];
        let address = target.host(destination / servers.max(1));
        Ends {
            server: server as u16,
            to: SocketAddr::new(address, target.address.port()),
            from: self.client.pool.host_of(source, address.is_ipv6()),
        }
    }

    /// What the next connection has, of `congestion` controls: every code point with one control, then with the next.
    pub fn marks(&mut self, congestion: usize) -> Marks {
        let turn = self.turn;
        self.turn += 1;
        let dscp = &self.client.play.dscp;
        let points = (dscp.len() as u64).max(1);
        Marks {
            dscp: dscp.get((turn % points) as usize).copied().unwrap_or(0),
            congestion: (turn / points % (congestion as u64).max(1)) as u8,
        }
    }

    /// A transfer begins: which traffic it belongs to.
    pub fn begin(&mut self) -> u32 {
        self.under_way += 1;
        self.generation
    }

    /// The connection that a session has kept; it is no longer kept.
    pub fn take_kept(&mut self, session: u64) -> Option<u64> {
        self.idle.remove(&session)
    }

    /// A connection is to be kept; false where the session has one already, or all is over.
    pub fn keep(&mut self, session: u64, token: u64) -> bool {
        let room = self.traffic.is_some() && !self.idle.contains_key(&session);
        if room {
            self.idle.insert(session, token);
        }
        room
    }

    /// A connection that was kept is gone.
    pub fn lost_kept(&mut self, session: u64, token: u64) {
        if self.idle.get(&session) == Some(&token) {
            self.idle.remove(&session);
        }
    }
}

impl Worker {
    /// Goes on with another plan, at once or, where the play has not begun, when it begins.
    pub fn set_plan(&mut self, plan: &SharedPlan) {
        if let Some(playing) = &mut self.playing {
            playing.client.plan = Arc::clone(plan);
        }
        self.start();
    }

    /// The play begins, or goes on with the plan that there is now.
    pub fn start(&mut self) {
        let Some(begun) = self.shared.begun() else {
            return;
        };
        let now = Time::ZERO + self.now().since(begun);
        let threads = u32::from(self.shared.config.threads);
        let number = self.number;
        let Some(playing) = &mut self.playing else {
            return;
        };
        self.shared.played[usize::from(number)].store(false, Ordering::Release);
        let Playing {
            client, traffic, ..
        } = playing;
        let changed = client.plan.model().is_some_and(|model| {
            let traffic = traffic.as_mut();
            traffic.is_some_and(|t| t.change(model, now))
        });
        if changed {
            return;
        }
        let share = Share {
            // Evenly over the clients, however few sessions there are.
            index: u32::from(number) * u32::from(client.of) + u32::from(client.index),
            of: u32::from(client.of) * threads,
        };
        // What begins with the play begins at its very beginning.
        let now = match traffic {
            None if !self.shared.joins_late() => Time::ZERO,
            _ => now,
        };
        *traffic = Some(client.plan.part(share, now));
        playing.generation = playing.generation.wrapping_add(1);
    }

    /// Ends all sources of datagrams, and closes what was kept.
    pub fn end_play(&mut self) {
        let Some(playing) = &mut self.playing else {
            return;
        };
        playing.traffic = None;
        let kept = std::mem::take(&mut playing.idle);
        let sources = playing.sources.tokens(|_| true);
        for token in kept.into_values() {
            self.forget(token);
        }
        for token in sources {
            self.source_over(token);
        }
    }

    /// When the next thing is due, on the clock of the run.
    pub fn next_due(&self) -> Option<Time> {
        let at = self.playing.as_ref()?.traffic.as_ref()?.poll_at()?;
        Some(self.shared.begun()? + at.since(Time::ZERO))
    }

    /// Begins what is due; true if some is left.
    pub fn play(&mut self, most: usize) -> bool {
        let Some(begun) = self.shared.begun() else {
            return false;
        };
        for _ in 0..most {
            let now = Time::ZERO + self.now().since(begun);
            let traffic = self.playing.as_mut().and_then(|p| p.traffic.as_mut());
            match traffic.and_then(|t| t.pop(now)) {
                Some(Due::Transfer(transfer)) => self.transfer_due(&transfer),
                Some(Due::Datagrams(source)) => self.source_begins(&source, begun),
                None => {
                    self.perhaps_played();
                    return false;
                }
            }
        }
        true
    }

    fn transfer_due(&mut self, due: &Transfer) {
        let Some(playing) = &mut self.playing else {
            return;
        };
        let ends = playing.ends(due.source, due.destination);
        let now = Time::from_nanos(self.since_begun());
        if self.shared.is_here(ends.server) {
            self.lateness.add(now.since(due.at));
            self.transfer(due, ends);
            return;
        }
        self.counts.withheld += 1;
        let traffic = self.playing.as_mut().and_then(|p| p.traffic.as_mut());
        if let Some(traffic) = traffic {
            traffic.ended(due.session, now + WITHHELD);
        }
    }

    /// Nanoseconds since the play began.
    pub fn since_begun(&self) -> u64 {
        let begun = self.shared.begun().unwrap_or(Time::ZERO);
        self.now().since(begun).as_nanos()
    }

    /// The session may have waited for this.
    pub fn transfer_over(&mut self, session: u64, generation: u32, outcome: Outcome) {
        let mut now = Time::from_nanos(self.since_begun());
        if outcome == Outcome::Failed {
            // What fails at once would be tried again at once.
            now += WITHHELD;
        }
        if let Some(playing) = &mut self.playing {
            playing.under_way = playing.under_way.saturating_sub(1);
            let own = playing.generation == generation;
            if let Some(traffic) = playing.traffic.as_mut().filter(|_| own) {
                traffic.ended(session, now);
            }
        }
        self.perhaps_played();
    }

    /// Says so when the play is over.
    pub fn perhaps_played(&mut self) {
        let over = self.playing.as_ref().is_some_and(|p| {
            let over = p.traffic.as_ref().is_some_and(|t| t.is_over());
            over && p.under_way == 0 && p.sources.len() == 0
        });
        if over {
            self.shared.played[usize::from(self.number)].store(true, Ordering::Release);
        }
    }
}
