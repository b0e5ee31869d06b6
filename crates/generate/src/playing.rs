//! The traffic that one thread generates.

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

/// Delay after a transfer failed or was withheld, before its session tries again. It applies to sessions that wait
/// for the end of their transfers.
const WITHHELD: Dur = Dur::from_millis(100);
/// Most events that are played before the load changes.
const ENTERED: usize = 100_000;

/// The traffic of one thread.
pub(super) struct Playing {
    client: Client,
    traffic: Option<Box<dyn Traffic>>,
    /// Generation of the current traffic. The ends of transfers from earlier generations are ignored.
    generation: u32,
    /// Kept connections by session.
    idle: HashMap<u64, u64>,
    pub sources: Table<Source>,
    /// Transfers in progress.
    under_way: u64,
    /// Number of connections so far, for the rotation of DSCPs and congestion controls.
    turn: u64,
    /// Number of changes of the load so far.
    changes: u64,
}

/// Endpoints of a transfer.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    /// Index of the server in the run.
    pub server: u16,
    pub to: SocketAddr,
    /// Source address; `None` if the kernel chooses it.
    pub from: Option<IpAddr>,
}

/// Socket options that differ between connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub dscp: u8,
    /// Index among the run's congestion controls.
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
            changes: 0,
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

    /// Seed of all random choices.
    pub fn seed(&self) -> u64 {
        self.client.plan.seed()
    }

    /// The share of one of the client's `threads` threads.
    pub fn share(&self, thread: u16, threads: u16) -> Share {
        let clients = u32::from(self.client.of);
        Share {
            // Distributes sessions evenly over the clients, even if there are few.
            index: u32::from(thread) * clients + u32::from(self.client.index),
            of: clients * u32::from(threads),
        }
    }

    /// UDP port of a server.
    pub fn datagram_port(&self, server: u16) -> u16 {
        let server = self.client.servers.get(usize::from(server));
        server.map_or(0, |s| s.datagrams)
    }

    /// Whether connections stay open for the next transfer.
    pub fn keeps(&self) -> bool {
        self.client.play.keep
    }

    /// Server, destination and source address for traffic between two hosts, given by rank.
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

    /// The options of the next connection, for `congestion` congestion controls: all DSCPs with the first one, then
    /// with the next.
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

    /// The number of this change of load, from 1.
    pub fn next_change(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }

    /// Starts a transfer and returns its generation.
    pub fn begin(&mut self) -> u32 {
        self.under_way += 1;
        self.generation
    }

    /// Removes and returns the connection that a session has kept.
    pub fn take_kept(&mut self, session: u64) -> Option<u64> {
        self.idle.remove(&session)
    }

    /// Keeps a connection for its session; false if the session already has one, or the traffic is over.
    pub fn keep(&mut self, session: u64, token: u64) -> bool {
        let room = self.traffic.is_some() && !self.idle.contains_key(&session);
        if room {
            self.idle.insert(session, token);
        }
        room
    }

    /// A kept connection was closed.
    pub fn lost_kept(&mut self, session: u64, token: u64) {
        if self.idle.get(&session) == Some(&token) {
            self.idle.remove(&session);
        }
    }
}

impl Worker {
    /// Switches to other traffic, at once or when the traffic starts. Running datagram sources end.
    pub fn set_plan(&mut self, plan: &SharedPlan) {
        let Some(playing) = &mut self.playing else {
            return;
        };
        playing.client.plan = Arc::clone(plan);
        let running = playing.sources.tokens(|s| s.goes_on());
        if self.shared.begun().is_some() {
            self.begin_plan();
            for token in running {
                self.source_over(token);
            }
        }
    }

    /// Changes the load: `plan` is of the same model.
    pub fn set_load(&mut self, plan: &SharedPlan) {
        let Some(begun) = self.shared.begun() else {
            return self.set_plan(plan);
        };
        // Sources that a part enters in their middle are due at once, and would be lost with the old load. This is bounded,
        // because traffic that is more than this thread can play is always due.
        for _ in 0..ENTERED {
            if !self.play(1) {
                break;
            }
        }
        let now = Time::ZERO + self.now().since(begun);
        let Some(playing) = &mut self.playing else {
            return;
        };
        let growth = plan.model().and_then(|model| {
            let traffic = playing.traffic.as_mut();
            traffic.and_then(|t| t.change(model, now))
        });
        let Some(growth) = growth else {
            return self.set_plan(plan);
        };
        playing.client.plan = Arc::clone(plan);
        self.unplayed();
        self.scale_sources(growth, now, begun);
    }

    /// Starts the traffic, unless a plan has started it.
    pub fn start(&mut self) {
        if self.playing.as_ref().is_some_and(|p| p.traffic.is_none()) {
            self.begin_plan();
        }
    }

    fn unplayed(&self) {
        self.shared.played[usize::from(self.number)].store(false, Ordering::Release);
    }

    /// Begins the current plan.
    fn begin_plan(&mut self) {
        let Some(begun) = self.shared.begun() else {
            return;
        };
        let now = Time::ZERO + self.now().since(begun);
        let threads = self.shared.config.threads;
        let number = self.number;
        self.unplayed();
        let Some(playing) = &mut self.playing else {
            return;
        };
        let share = playing.share(number, threads);
        let Playing {
            client, traffic, ..
        } = playing;
        // Initial traffic starts at time zero even if this thread starts slightly later.
        let now = match traffic {
            None if !self.shared.joins_late() => Time::ZERO,
            _ => now,
        };
        *traffic = Some(client.plan.part(share, now));
        playing.generation = playing.generation.wrapping_add(1);
    }

    /// Ends all datagram sources, and closes kept connections.
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

    /// When the next event is due, on the clock of the run.
    pub fn next_due(&self) -> Option<Time> {
        let at = self.playing.as_ref()?.traffic.as_ref()?.poll_at()?;
        Some(self.shared.begun()? + at.since(Time::ZERO))
    }

    /// Starts the events that are due, at most `most`; true if some are left.
    pub fn play(&mut self, most: usize) -> bool {
        let Some(begun) = self.shared.begun() else {
            return false;
        };
        for _ in 0..most {
            let now = Time::ZERO + self.now().since(begun);
            let traffic = self.playing.as_mut().and_then(|p| p.traffic.as_mut());
            match traffic.and_then(|t| t.pop(now)) {
                Some(Due::Transfer(transfer)) => self.transfer_due(&transfer),
                Some(Due::Datagrams(source)) => self.source_begins(&source, begun, 0),
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

    /// Nanoseconds since the traffic began.
    pub fn since_begun(&self) -> u64 {
        let begun = self.shared.begun().unwrap_or(Time::ZERO);
        self.now().since(begun).as_nanos()
    }

    /// A transfer ended; its session may have waited for it.
    pub fn transfer_over(&mut self, session: u64, generation: u32, outcome: Outcome) {
        let mut now = Time::from_nanos(self.since_begun());
        if outcome == Outcome::Failed {
            // The delay prevents a busy loop of immediate failures.
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

    /// Reports it if the traffic is over.
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
