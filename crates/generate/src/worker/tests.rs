//! Tests of one thread's loop, on socket pairs.

use std::os::unix::net::UnixStream;

use swell_base::Rate;
use swell_traffic::flowlevel::{Burst, Transfer, UdpKind, UdpSource};

use super::*;
use crate::patience::until;
use crate::{Addresses, Budget, Client, Closed, Config, Key, Limits, Play, Server, Target};

/// A server's thread. Its only client has agreed, and sending a packet uses up the rate limit for ten seconds.
fn limited() -> Worker {
    let role = Role::Server(Server {
        clients: vec![Addresses::parse(&["127.0.0.0/8"]).unwrap()],
        ..Server::default()
    });
    let shared = shared(role, Arc::new(Budget::new(Rate::from_bps(1_000))));
    shared.hear(0);
    Worker::new(Arc::new(shared), 0).unwrap()
}

/// A run with a lease for an hour and this budget.
fn shared(role: Role, budget: Arc<Budget>) -> Shared {
    let limits = Limits {
        budget: Some(budget),
        ..Limits::default()
    };
    Shared::new(Config {
        limits,
        ..config(role)
    })
    .unwrap()
}

fn config(role: Role) -> Config {
    Config {
        key: Key::new([7; 16]),
        lease: Dur::from_secs(3_600),
        congestion: Vec::new(),
        threads: 1,
        precise: false,
        room: 0,
        elapsed: Dur::ZERO,
        limits: Limits::default(),
        role,
    }
}

/// A connection on which the server has much to send, and its other end.
fn giving(worker: &mut Worker) -> (u64, UnixStream) {
    let (own, other) = UnixStream::pair().unwrap();
    let token = worker.conns.insert(Conn {
        to_send: 1 << 30,
        ..Conn::new(own.into(), State::Giving, Time::ZERO)
    });
    (token, other)
}

/// Puts a connection into the queue for the rate limit.
fn wait(worker: &mut Worker, token: u64) {
    worker.conns.get_mut(token).unwrap().ready = true;
    worker.waiting.push_back(token);
}

#[test]
fn a_burst_leaves_one_timer_for_all_who_wait() {
    let mut worker = limited();
    let (token, _other) = giving(&mut worker);
    wait(&mut worker, token);
    worker.room_again();
    // It has sent a packet, and waits again.
    assert!(worker.counts.sent_bytes > 0);
    assert_eq!((worker.waiting.len(), worker.queue.len()), (1, 1));
}

#[test]
fn waiting_for_the_rate_limit_is_no_stall() {
    let mut worker = limited();
    let (waiting, _one) = giving(&mut worker);
    let (stalled, _two) = giving(&mut worker);
    wait(&mut worker, waiting);
    worker.look(Time::ZERO + Dur::from_secs(100));
    assert!(worker.conns.get_mut(waiting).is_some());
    assert!(worker.conns.get_mut(stalled).is_none());
    assert_eq!(worker.counts.failed, 1);
}

#[test]
fn a_transfer_whose_connection_cannot_be_watched_has_failed() {
    let mut worker = limited();
    let (own, _other) = UnixStream::pair().unwrap();
    // What is watched already cannot be watched again (epoll_ctl(2), EEXIST).
    watch(&worker.epoll, &own, 0).unwrap();
    let peer = [127, 0, 0, 1].into();
    let kept = worker.keep_conn(own.into(), peer, 0, State::Giving, [1, 0]);
    assert_eq!((kept, worker.counts.failed), (None, 1));
    assert_eq!(
        worker.failures.get(&Errno::EXIST.raw_os_error()),
        Some(&1),
        "{:?}",
        worker.failures
    );
}

/// A client of one server.
fn client_of(address: std::net::SocketAddr, datagrams: u16) -> Role {
    Role::Client(Client {
        index: 0,
        of: 1,
        pool: Addresses::default(),
        servers: vec![Target {
            address,
            datagrams,
            pool: Addresses::default(),
        }],
        plan: Arc::new(Closed {
            sessions: 1,
            up: 1,
            down: 1,
        }),
        play: Play::default(),
    })
}

/// A client's thread with a budget of its own, and the server that it knows.
fn client() -> (Worker, Arc<Budget>, std::net::TcpListener) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let budget = Arc::new(Budget::new(Rate::from_bps(1_000_000)));
    let role = client_of(listener.local_addr().unwrap(), 9);
    let shared = shared(role, Arc::clone(&budget));
    (Worker::new(Arc::new(shared), 0).unwrap(), budget, listener)
}

fn upload(worker: &mut Worker) -> u64 {
    let due = Transfer {
        at: Time::ZERO,
        session: 0,
        source: 0,
        destination: 0,
        up: 10_000,
        down: 1,
        limits: [None; 2],
        kept: false,
    };
    let ends = worker.playing.as_ref().unwrap().ends(0, 0);
    worker.transfer(&due, ends);
    worker.conns.tokens(|_| true)[0]
}

/// The server would close the connection after five seconds.
#[test]
fn a_header_does_not_wait_for_the_rate_limit() {
    let (mut worker, budget, listener) = client();
    let token = upload(&mut worker);
    // Another thread uses up the budget for a minute while the connection is made.
    budget.pay(8_000_000);
    until(|| listener.accept().is_ok());
    worker.client_news(token, EventFlags::OUT);
    assert_eq!(worker.counts.sent_bytes, HEADER as u64);
    assert_eq!(worker.waiting, [token], "the rest waits");
}

#[test]
fn a_connection_is_not_made_before_the_rate_limit_allows_its_header() {
    let (mut worker, budget, listener) = client();
    // 10 ms beyond a burst of 10 ms.
    budget.pay(24_000);
    let token = upload(&mut worker);
    assert_eq!(worker.waiting, [token]);
    assert!(listener.accept().is_err());
    until(|| {
        let now = worker.now();
        worker.timers(now);
        listener.accept().is_ok()
    });
    assert_eq!(worker.counts.limited, 1);
}

#[test]
fn a_precise_thread_waits_for_datagrams_that_are_due_soon() {
    let server = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let shared = Shared::new(Config {
        precise: true,
        ..config(client_of(address, address.port()))
    })
    .unwrap();
    shared.hear(0);
    shared.begin();
    let begun = shared.begun().unwrap();
    let mut worker = Worker::new(Arc::new(shared), 0).unwrap();
    // Nothing else is due.
    while worker.queue.pop_until(Time::MAX).is_some() {}
    let law = UdpSource {
        kind: UdpKind::ConstantRate,
        at: Time::from_nanos(worker.since_begun()) + Dur::from_millis(20),
        until: Time::ZERO + Dur::from_secs(100),
        number: 0,
        source: 0,
        destination: 0,
        spacing: Dur::from_micros(10),
        lasts: Dur::ZERO,
        exchanges: None,
        up: Burst {
            datagrams: 1.0,
            payload: 100,
        },
        down: Burst::default(),
    };
    worker.source_begins(&law, begun, 0);
    let token = worker.playing.as_ref().unwrap().sources.tokens(|_| true)[0];
    let (due, _) = worker.queue.pop_until(Time::MAX).unwrap();
    while worker.now() < due {}
    worker.exchanges_due(token, due);
    // The first one and eight more.
    assert!(worker.counts.datagrams_sent > 8, "{:?}", worker.counts);
    assert_eq!(worker.queue.len(), 1);
}
