//! Runs over the loopback interface.

#![expect(
    clippy::shadow_unrelated,
    reason = "each step of a test has its own run, traffic and answers"
)]

use std::collections::VecDeque;
use std::sync::Arc;

use swell_base::{Dur, Time};
use swell_traffic::flowlevel::{Burst, Due, Share, Transfer, UdpKind, UdpSource};

use super::*;
use crate::patience::until;

mod datagrams;
mod ends;
mod loss;
pub mod models;
mod strangers;
mod transfers;

const KEY: Key = Key::new([7; 16]);

pub fn config(role: Role) -> Config {
    Config {
        key: KEY,
        lease: Dur::from_secs(2),
        congestion: Vec::new(),
        threads: 1,
        precise: false,
        room: 1 << 20,
        elapsed: Dur::ZERO,
        limits: Default::default(),
        role,
    }
}

pub fn pool(text: &str) -> Addresses {
    Addresses::parse(&[text]).unwrap()
}

/// A server for one client at any loopback address.
fn server() -> Run {
    serving(1, config(Role::Server(Server::default())))
}

fn serving(clients: usize, config: Config) -> Run {
    let role = Role::Server(Server {
        clients: vec![pool("127.0.0.0/8"); clients],
        ..Server::default()
    });
    Run::new(Config { role, ..config }).unwrap()
}

fn target(server: &Run) -> Target {
    Target {
        address: ([127, 0, 0, 1], server.port()).into(),
        datagrams: server.datagram_port(),
        pool: Addresses::default(),
    }
}

fn client_of(servers: Vec<Target>, plan: impl Plan + 'static, play: Play) -> Client {
    Client {
        index: 0,
        of: 1,
        pool: Addresses::default(),
        servers,
        plan: Arc::new(plan),
        play,
    }
}

fn client(server: &Run, plan: impl Plan + 'static, play: Play) -> Run {
    let role = Role::Client(client_of(vec![target(server)], plan, play));
    Run::new(config(role)).unwrap()
}

fn agreed(run: &Run) {
    until(|| run.statistics().parties > 0);
}

/// Starts a client and waits until all traffic is over.
fn play(client: &Run) -> (Counts, Vec<Flow>) {
    agreed(client);
    client.start();
    until(|| client.is_played());
    let counts = client.stop().counts;
    (counts, client.flows(0, usize::MAX).flows)
}

/// A list of transfers and sources with their times. The first share gets all of them.
#[derive(Clone)]
struct Script(Vec<Due>);

struct Reading(VecDeque<Due>);

fn at(due: &Due) -> Time {
    match due {
        Due::Transfer(t) => t.at,
        Due::Datagrams(s) => s.at,
    }
}

impl Plan for Script {
    fn part(&self, share: Share, now: Time) -> Box<dyn Traffic> {
        let session = |due: &Due| match due {
            Due::Transfer(t) => t.session,
            Due::Datagrams(s) => s.number,
        };
        let own = |due: &&Due| session(due) % u64::from(share.of) == u64::from(share.index);
        let later = self.0.iter().filter(own).filter(|due| at(due) >= now);
        let mut all: Vec<Due> = later.copied().collect();
        all.sort_by_key(at);
        Box::new(Reading(all.into()))
    }
}

impl Traffic for Reading {
    fn poll_at(&self) -> Option<Time> {
        self.0.front().map(at)
    }
    fn pop(&mut self, now: Time) -> Option<Due> {
        if self.0.front().is_some_and(|due| at(due) <= now) {
            return self.0.pop_front();
        }
        None
    }
    fn active(&self) -> u64 {
        self.0.len() as u64
    }
}

fn after(span: Dur) -> Time {
    Time::ZERO + span
}

/// `each` transfers for each of `sessions` sessions, with sizes by number.
fn transfers(sessions: u64, each: u64, gap: Dur, sizes: fn(u64) -> (u64, u64)) -> Script {
    let all = (0..sessions).flat_map(|session| (0..each).map(move |n| (session, n)));
    let due = all.map(|(session, n)| {
        let (up, down) = sizes(session * each + n);
        Due::Transfer(Transfer {
            at: after(gap * (n + 1)),
            session,
            source: session,
            destination: n,
            up,
            down,
            limits: [None; 2],
            kept: false,
        })
    });
    Script(due.collect())
}

/// A source of exchanges that starts at time zero.
fn source(kind: UdpKind, spacing: Dur, until: Dur, up: Burst, down: Burst) -> Due {
    Due::Datagrams(UdpSource {
        kind,
        at: Time::ZERO,
        until: after(until),
        number: 0,
        source: 0,
        destination: 0,
        spacing,
        lasts: Dur::ZERO,
        exchanges: None,
        up,
        down,
    })
}

fn burst(datagrams: f64, payload: u32) -> Burst {
    Burst { datagrams, payload }
}
