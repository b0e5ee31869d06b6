//! More connections than one descriptor table holds. This is a test program of its own, because the limit belongs to
//! the process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use swell_base::Dur;
use swell_generate::{Addresses, Client, Closed, Config, Key, Play, Role, Run, Server, Target};

/// The process's limit on descriptors.
const FEW: u64 = 300;

fn config(role: Role) -> Config {
    Config {
        key: Key::new([7; 16]),
        lease: Dur::from_secs(60),
        congestion: Vec::new(),
        threads: 4,
        precise: false,
        room: 1_000,
        elapsed: Dur::ZERO,
        limits: Default::default(),
        role,
    }
}

fn until(mut what: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it never happened"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn every_thread_may_have_as_many_descriptors_as_the_limit_says() {
    let few = Some(FEW);
    let limit = Rlimit {
        current: few,
        maximum: few,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    // Runs raise the limit if they are permitted to (capabilities(7)). This removes the permission.
    let mut able = capabilities(None).unwrap();
    able.effective.remove(CapabilitySet::SYS_RESOURCE);
    set_capabilities(None, able).unwrap();
    let before = descriptors();
    let home = Addresses::parse(&["127.0.0.0/8"]).unwrap();
    let server = Run::new(config(Role::Server(Server {
        clients: vec![home],
        ..Server::default()
    })))
    .unwrap();
    let target = Target {
        address: ([127, 0, 0, 1], server.port()).into(),
        datagrams: server.datagram_port(),
        pool: Addresses::default(),
    };
    // Both ends of each connection are in this process: more than three times what one of the eight tables holds.
    let sessions = 480;
    let client = Run::new(config(Role::Client(Client {
        index: 0,
        of: 1,
        pool: Addresses::default(),
        servers: vec![target],
        plan: Arc::new(Closed {
            sessions,
            up: 100,
            // Transfers never end.
            down: 1 << 40,
        }),
        play: Play::default(),
    })))
    .unwrap();
    assert_eq!(getrlimit(Resource::Nofile).current, few);
    until(|| client.statistics().parties > 0);
    client.start();
    let each = sessions + 1;
    until(|| client.statistics().open == each && server.statistics().open == each);
    let [a, b] = [&client, &server].map(|run| run.statistics().counts);
    assert_eq!((a.without_descriptors, b.without_descriptors), (0, 0));
    assert_eq!((a.failed, b.failed), (0, 0));
    // The descriptors are in the threads' tables and disappear with the threads. Nothing is left in the main table.
    assert!(descriptors() < before + 20, "{}", descriptors());
    let port = server.port();
    drop((client, server));
    assert_eq!(descriptors(), before);
    std::net::TcpListener::bind(("0.0.0.0", port)).expect("nobody listens there any more");
}
