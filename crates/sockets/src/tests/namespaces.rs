//! The two sides in two network namespaces.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::net::{getpeername, getsockname, sockopt};
use swell_base::{Dur, Side};
use swell_tcp::{Algorithm, Config};
use swell_workload::{Access, Action, Conn, End, Event, Open};

use super::common::{Script, run_until};
use crate::{Carrier, CarrierConfig, InNamespace, Paths, SideConfig};

const NODES: u32 = 1000;

/// A namespace, held by a process that sleeps in it and ends with the test.
struct Namespace(Child);

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Namespace {
    fn new() -> Result<Namespace, String> {
        let child = Command::new("unshare")
            .args(["--net", "sleep", "120"])
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("unshare: {e}"))?;
        let namespace = Namespace(child);
        let own = std::fs::read_link("/proc/self/ns/net").map_err(|e| e.to_string())?;
        let deadline = Instant::now() + Duration::from_secs(10);
        while std::fs::read_link(namespace.path())
            .ok()
            .is_none_or(|n| n == own)
        {
            if Instant::now() > deadline {
                return Err("unshare --net gives no namespace here".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(namespace)
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }

    fn open(&self) -> OwnedFd {
        File::open(self.path()).expect("it is there").into()
    }

    fn ip(&self, command: &str) -> Result<(), String> {
        let out = Command::new("nsenter")
            .arg(format!("--net={}", self.path()))
            .arg("ip")
            .args(command.split(' '))
            .output()
            .map_err(|e| format!("nsenter: {e}"))?;
        if out.status.success() {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&out.stderr);
        Err(format!("ip {command}: {}", why.trim()))
    }
}

/// Two namespaces with a wire between them: 10.1/16 and fd01::/64 in one, 10.2/16 and fd02::/64 in the other. No
/// single address is configured.
fn pair() -> Result<[Namespace; 2], String> {
    let [a, b] = [Namespace::new()?, Namespace::new()?];
    a.ip(&format!(
        "link add wire type veth peer name wire netns {}",
        b.0.id()
    ))?;
    for (namespace, own, other) in [(&a, 1, 2), (&b, 2, 1)] {
        for command in [
            "link set lo up".into(),
            // Both ends have the same hardware address, so neither has to resolve the other's. Address resolution is
            // not answered while an address is new.
            "link set wire address 02:00:00:00:00:01 arp off".into(),
            "link set wire up".into(),
            format!("addr add 192.0.2.{own}/32 dev wire"),
            format!("route add 192.0.2.{other} dev wire"),
            format!("route add 10.{other}.0.0/16 via 192.0.2.{other} congctl cubic"),
            format!("route add local 10.{own}.0.0/16 dev lo"),
            format!("-6 addr add fd00::{own}/128 dev wire nodad"),
            format!("-6 route add fd00::{other} dev wire"),
            format!("-6 route add fd0{other}::/64 via fd00::{other}"),
            format!("-6 route add local fd0{own}::/64 dev lo"),
        ] {
            namespace.ip(&command)?;
        }
    }
    Ok([a, b])
}

fn side(there: &Namespace, n: u8) -> SideConfig {
    let home = File::open("/proc/thread-self/ns/net").expect("every thread has one");
    SideConfig {
        sockets: Box::new(InNamespace::new(there.open(), home.into())),
        ipv4: format!("10.{n}.0.0/16").parse().unwrap(),
        ipv6: Some(format!("fd0{n}::/64").parse().unwrap()),
        device: None,
    }
}

type Calls = Arc<Mutex<(BTreeSet<(Side, IpAddr)>, Vec<Dur>, usize)>>;

struct Map(Calls);

impl Paths for Map {
    fn taken(&mut self, side: Side, address: IpAddr, access: &Access) {
        let mut told = self.0.lock().unwrap();
        assert!(told.0.insert((side, address)), "{address} is taken");
        told.1.push(access.delay);
    }

    fn released(&mut self, side: Side, address: IpAddr) {
        let mut told = self.0.lock().unwrap();
        assert!(told.0.remove(&(side, address)), "{address} is not taken");
        told.2 += 1;
    }
}

#[test]
fn a_thousand_clients_and_servers_have_an_address_each() {
    let [left, right] = match pair() {
        Ok(pair) => pair,
        Err(why) => {
            return swell_needs::skip(format_args!("no namespaces can be made here: {why}"));
        }
    };
    let (script, log) = Script::new(|_, event, actions| match event {
        Event::Start => {
            for n in 0..NODES {
                let access = |key| Access {
                    delay: Dur::from_millis(u64::from(n)),
                    key,
                    ..Access::default()
                };
                let mut open = Open {
                    client: access(u64::from(n) + 1),
                    server: access(1 << 40 | u64::from(n)),
                    client_side: Side::of(n % 3 == 0),
                    ..Open::default()
                };
                open.wire.ipv6 = n % 2 == 0;
                actions.push(Action::Connect(Conn(n), Box::new(open)));
                actions.push(Action::Send(Conn(n), End::Client, u64::from(n) + 1));
            }
        }
        Event::Timer(_) => {
            actions.extend((0..NODES).map(|n| Action::Close(Conn(n), End::Client)));
        }
        Event::Received(..) => {}
        Event::Eof(conn, End::Server) => actions.push(Action::Close(conn, End::Server)),
        _ => {}
    });
    let told = Calls::default();
    let mut carrier = Carrier::new(CarrierConfig {
        sides: [side(&left, 1), side(&right, 2)],
        paths: Some(Box::new(Map(Arc::clone(&told)))),
        epoch: None,
    })
    .unwrap();
    // The routes set a different congestion control.
    let reno = Config {
        algorithm: Algorithm::NewReno,
        ..Config::linux()
    };
    carrier.add(script, &Arc::new(reno)).unwrap();
    let all: u64 = (1..=u64::from(NODES)).sum();
    run_until(&mut carrier, || {
        log.sum(|e| match e {
            Event::Received(_, End::Server, n) => *n,
            _ => 0,
        }) == all
    });
    assert_eq!(log.count(|e| matches!(e, Event::Reset(..))), 0);
    // The kernel's view of the accepted sockets.
    let mut seen = BTreeSet::new();
    for slot in carrier.slots.numbers() {
        let fd = carrier.slots.peek(slot).ends[1].socket().unwrap();
        if let Ok(SocketAddr::V4(_)) = SocketAddr::try_from(getsockname(fd).unwrap()) {
            assert_eq!(sockopt::tcp_congestion(fd).unwrap(), "reno");
        }
        let peer = SocketAddr::try_from(getpeername(fd).unwrap().unwrap()).unwrap();
        let own = SocketAddr::try_from(getsockname(fd).unwrap()).unwrap();
        let [from, to] = if carrier.slots.peek(slot).client_side == Side::Left {
            [Side::Left, Side::Right]
        } else {
            [Side::Right, Side::Left]
        };
        assert!(seen.insert((from, peer.ip())), "{peer} twice");
        assert!(seen.insert((to, own.ip())), "{own} twice");
    }
    assert_eq!(seen.len(), 2 * NODES as usize);
    assert_eq!(told.lock().unwrap().0, seen);
    let delays = told.lock().unwrap().1.len();
    assert_eq!(delays, 2 * NODES as usize);
    let report = carrier.report();
    assert_eq!(report.counts.access_not_applied, 0);
    assert_eq!(report.counts.strangers, 0);
    carrier.finish();
    let after = told.lock().unwrap();
    assert!(after.0.is_empty() && after.2 == 2 * NODES as usize);
}
