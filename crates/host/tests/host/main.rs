//! Tests of hosts on the running kernel. They need root or user namespaces, and processes that start without threads,
//! so this is a separate program. The tests run one after the other: first as the current user and, if that is root,
//! again as nobody.
#![expect(clippy::print_stdout, reason = "a test program reports on stdout")]

mod ferry;
mod network;
mod programs;

use ferry::pair;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use swell_host::clock::epoch;
use swell_host::doctor::{State, examine};
use swell_host::{Checksum, Nic};
use swell_host::{
    DeviceKind, Error, Host, HostConfig, Offload, Process, Program, Rights, Stream, helper_main,
};

/// Time limit for operations that should take milliseconds.
const LONG: Duration = Duration::from_secs(20);

type Test = fn(&Rights);

const TESTS: &[(&str, Test)] = &[
    ("datagrams_cross_in_both_families", datagrams_cross),
    (
        "packets_that_are_read_late_have_the_stamp_of_their_time",
        stamps_are_of_their_time,
    ),
    ("ping_works_where_it_is_installed", ping_works),
    ("names_resolve_inside", names_resolve),
    (
        "a_megabyte_arrives_intact_whatever_is_offloaded",
        a_megabyte_arrives,
    ),
    ("the_machine_is_out_of_reach", the_machine_is_out_of_reach),
    ("two_emulations_do_not_see_each_other", two_emulations),
    (
        "a_prefix_is_a_hundred_nodes",
        network::a_prefix_is_a_hundred_nodes,
    ),
    (
        "every_datagram_to_a_closed_port_is_refused",
        network::every_datagram_to_a_closed_port_is_refused,
    ),
    (
        "the_congestion_control_is_what_was_asked_for",
        congestion_control,
    ),
    ("programs_end_as_they_end", programs::programs_end),
    (
        "a_program_that_is_not_there_is_named",
        programs::a_missing_program,
    ),
    (
        "programs_end_with_what_they_started",
        programs::programs_end_with_what_they_started,
    ),
    (
        "tunnels_are_segmented_by_the_kernel",
        network::tunnels_are_segmented_by_the_kernel,
    ),
    (
        "the_end_of_a_host_ends_what_runs_there",
        programs::the_end_of_a_host,
    ),
    ("an_idle_host_sends_nothing", an_idle_host_sends_nothing),
    ("kill_9_leaves_nothing", programs::kill_9_leaves_nothing),
    ("the_doctor_sees_what_works", the_doctor_sees_what_works),
];

fn main() -> ExitCode {
    if let Some(code) = helper_main() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [marker, role, rest @ ..] = arguments.as_slice()
        && marker == ROLE
    {
        return play(role, rest);
    }
    let rights = match Rights::obtain() {
        Ok(rights) => rights,
        Err(e) => {
            swell_needs::skip(format_args!("all tests of hosts: {e}"));
            return ExitCode::SUCCESS;
        }
    };
    let who = if rights.rootless() {
        "user namespace"
    } else {
        "root"
    };
    let wanted = arguments.iter().find(|a| !a.starts_with('-'));
    for device in [DeviceKind::Tun, DeviceKind::Veth] {
        if device == DeviceKind::Tun
            && let Err(e) = fs::File::open("/dev/net/tun")
        {
            let why = format!("tests of TUN devices ({who}): /dev/net/tun: {e}");
            // Often only root may open it, and root runs the same tests.
            match rights.rootless() {
                true => println!("skipped: {why}"),
                false => swell_needs::skip(why),
            }
            continue;
        }
        VETH.store(device == DeviceKind::Veth, Ordering::Relaxed);
        for (name, test) in TESTS {
            if wanted.is_none_or(|w| name.contains(w.as_str())) {
                // A failing test panics, which ends the program with a failure.
                test(&rights);
                println!("test {name} ({who}, {device:?}) ... ok");
            }
        }
    }
    if rights.rootless() {
        return ExitCode::SUCCESS;
    }
    again_as_nobody(&arguments)
}

/// The same tests as an unprivileged user.
fn again_as_nobody(arguments: &[String]) -> ExitCode {
    let nobody = 65534;
    let own = std::env::current_exe().expect("the kernel knows the file that runs");
    let runs = |program: &Path| {
        let mut probe = Command::new(program);
        probe.args([ROLE, "exit", "0"]).uid(nobody).gid(nobody);
        let status = probe.current_dir("/").status();
        status.is_ok_and(|status| status.success())
    };
    // The folder of the build may be closed to others.
    let open = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir()
        .expect("a scratch directory");
    let copy = open.path().join("host");
    let me = if runs(&own) {
        own
    } else {
        fs::copy(&own, &copy).expect("there is space for a copy");
        copy
    };
    if !runs(&me) {
        let why = format!("tests as nobody, who may not execute {}", me.display());
        swell_needs::skip(why);
        return ExitCode::SUCCESS;
    }
    let status = Command::new(&me)
        .args(arguments)
        .uid(nobody)
        .gid(nobody)
        .current_dir("/")
        .status()
        .expect("it could be executed a moment ago");
    ExitCode::from(u8::from(!status.success()))
}

// Programs that run inside hosts: this executable in other roles, so that nothing needs to be installed.

const ROLE: &str = "__role";

fn role(arguments: &[&str]) -> Program {
    let me = std::env::current_exe().expect("the kernel knows the file that runs");
    let mut argv: Vec<OsString> = vec![me.into(), ROLE.into()];
    argv.extend(arguments.iter().map(OsString::from));
    Program {
        stdout: Stream::Piped,
        ..Program::new(argv)
    }
}

fn play(role: &str, arguments: &[String]) -> ExitCode {
    let first = arguments.first().map_or("", String::as_str);
    match role {
        "exit" => return ExitCode::from(first.parse::<u8>().unwrap_or(99)),
        "abort" => std::process::abort(),
        "sleep" => thread::sleep(Duration::from_secs(1000)),
        "resolve" => match (first, 80).to_socket_addrs() {
            Ok(found) => {
                let mut found: Vec<String> = found.map(|a| a.ip().to_string()).collect();
                found.sort();
                found.dedup();
                println!("{}", found.join(" "));
            }
            Err(_) => println!("unknown"),
        },
        "who" => println!(
            "{} {}",
            rustix::process::getuid().as_raw(),
            rustix::system::uname().nodename().to_string_lossy()
        ),
        "connect" => match TcpStream::connect_timeout(
            &first.parse().expect("tests pass an address"),
            Duration::from_secs(2),
        ) {
            Ok(_) => println!("connected"),
            Err(e) => println!("{:?}", e.kind()),
        },
        "connect-unix" => {
            let connected = match first.strip_prefix('@') {
                Some(name) => std::os::unix::net::SocketAddr::from_abstract_name(name)
                    .and_then(|a| UnixStream::connect_addr(&a)),
                None => UnixStream::connect(first),
            };
            match connected {
                Ok(_) => println!("connected"),
                Err(e) => println!("{:?}", e.kind()),
            }
        }
        // Starts a process that leaves the process group and outlives its parent.
        "daemon" => {
            let me = std::env::current_exe().expect("the kernel knows the file that runs");
            let started = Command::new(me)
                .args([ROLE, "sleep", first])
                .process_group(0)
                .stdout(Stdio::null())
                .spawn();
            println!("{}", started.is_ok());
        }
        "victim" => victim(first),
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

/// Tells the victim process to create hosts of the same kind as its parent.
const VICTIM_HAS_VETH: &str = "SWELL_TEST_VICTIM_HAS_VETH";

/// Creates two hosts with programs and waits to be killed.
fn victim(marker: &str) {
    VETH.store(
        std::env::var_os(VICTIM_HAS_VETH).is_some(),
        Ordering::Relaxed,
    );
    let rights = Rights::obtain().expect("the parent could, so this can");
    let (a, _device_a) = Host::create(&rights, &client()).expect("as in the parent");
    let (b, _device_b) = Host::create(&rights, &server()).expect("as in the parent");
    for host in [&a, &b] {
        let mut daemon = host
            .spawn(role(&["daemon", marker]))
            .expect("as in the parent");
        daemon.wait().expect("it ends at once");
        host.spawn(role(&["sleep", marker]))
            .expect("as in the parent");
    }
    println!("ready");
    thread::sleep(LONG * 10);
}

fn output(mut process: Process) -> String {
    let mut text = String::new();
    process
        .stdout
        .take()
        .expect("roles write into a pipe")
        .read_to_string(&mut text)
        .expect("roles write text");
    process.wait().expect("a child can be awaited");
    text.trim().to_owned()
}

fn ask(host: &Host, arguments: &[&str]) -> String {
    output(
        host.spawn(role(arguments))
            .expect("this executable is there"),
    )
}

// Two hosts and the simplest network.

fn ip(text: &str) -> IpAddr {
    text.parse().expect("tests write addresses")
}

fn client() -> HostConfig {
    of_kind(HostConfig::new("client", [ip("10.9.0.1"), ip("fd09::1")]))
}

fn server() -> HostConfig {
    of_kind(HostConfig::new("server", [ip("10.9.0.2"), ip("fd09::2")]))
}

/// Whether the hosts of the tests use a veth.
static VETH: AtomicBool = AtomicBool::new(false);

fn of_kind(mut config: HostConfig) -> HostConfig {
    config.device.kind = Some(if VETH.load(Ordering::Relaxed) {
        DeviceKind::Veth
    } else {
        DeviceKind::Tun
    });
    config
}

fn datagrams_cross(rights: &Rights) {
    let (a, b, _ferry) = pair(rights, &client(), &server());
    for (from, to) in [("10.9.0.1", "10.9.0.2"), ("fd09::1", "fd09::2")] {
        let there = b
            .enter(|| UdpSocket::bind((ip(to), 7)))
            .expect("enter")
            .expect("bind");
        let here = a
            .enter(|| UdpSocket::bind((ip(from), 0)))
            .expect("enter")
            .expect("bind");
        for socket in [&here, &there] {
            socket.set_read_timeout(Some(LONG)).expect("a time-out");
        }
        here.send_to(b"question", (ip(to), 7)).expect("send");
        let mut buffer = [0; 100];
        let (n, sender) = there.recv_from(&mut buffer).expect("the question");
        assert_eq!((&buffer[..n], sender.ip()), (&b"question"[..], ip(from)));
        there.send_to(b"answer", sender).expect("send");
        let (m, _) = here.recv_from(&mut buffer).expect("the answer");
        assert_eq!(&buffer[..m], b"answer");
    }
}

fn ping_works(rights: &Rights) {
    if !swell_needs::programs(&["ping"]) {
        return;
    }
    let (a, _b, _ferry) = pair(rights, &client(), &server());
    for to in ["10.9.0.2", "fd09::2"] {
        let mut ping = a
            .spawn(Program::new(["ping", "-n", "-c", "1", "-W", "10", to]))
            .expect("ping is there");
        let status = ping.wait_timeout(LONG).expect("a child");
        assert_eq!(status.and_then(|s| s.code()), Some(0), "ping {to}");
    }
}

fn names_resolve(rights: &Rights) {
    let mut config = client();
    config.names = vec![
        ("server".into(), ip("10.9.0.2")),
        ("server".into(), ip("fd09::2")),
    ];
    let (a, _b, _ferry) = pair(rights, &config, &server());
    assert_eq!(ask(&a, &["resolve", "server"]), "10.9.0.2 fd09::2");
    assert_eq!(ask(&a, &["resolve", "client"]), "10.9.0.1 fd09::1");
    assert_eq!(ask(&a, &["resolve", "localhost"]), "127.0.0.1 ::1");
    assert_eq!(ask(&a, &["resolve", "www.example.org"]), "unknown");
    let user = rustix::process::getuid().as_raw();
    assert_eq!(ask(&a, &["who"]), format!("{user} client"));
}

/// Sends a megabyte from a to b and returns whether it arrived unchanged.
fn a_megabyte(a: &Host, b: &Host, to: SocketAddr) -> bool {
    let listener = b
        .enter(|| TcpListener::bind(to))
        .expect("enter")
        .expect("listen");
    let sent: Arc<Vec<u8>> = Arc::new(
        (0u32..1 << 18)
            .flat_map(|k| (k * 7919).to_ne_bytes())
            .collect(),
    );
    let expected = Arc::clone(&sent);
    let reader = thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("a connection");
        connection.set_read_timeout(Some(LONG)).expect("a time-out");
        let mut got = Vec::new();
        connection.read_to_end(&mut got).expect("all of it");
        got == *expected
    });
    let mut connection = a
        .enter(|| TcpStream::connect_timeout(&to, LONG))
        .expect("enter")
        .expect("connect");
    connection.write_all(&sent).expect("send");
    drop(connection);
    reader.join().expect("no panic")
}

fn a_megabyte_arrives(rights: &Rights) {
    for offload in [Offload::Segment, Offload::Pass, Offload::Off] {
        let (mut at_a, mut at_b) = (client(), server());
        at_a.device.offload = offload;
        at_b.device.offload = offload;
        let (a, b, ferry) = pair(rights, &at_a, &at_b);
        for address in ["10.9.0.2", "fd09::2"] {
            let whole = a_megabyte(&a, &b, SocketAddr::new(ip(address), 80));
            assert!(whole, "{offload:?} to {address}");
        }
        match offload {
            Offload::Segment | Offload::Off => assert_eq!(ferry.largest(), 1500, "{offload:?}"),
            Offload::Pass => assert!(ferry.largest() > 1500, "nothing was offloaded"),
        }
        assert_eq!(ferry.stop(), 0, "dropped at a device, {offload:?}");
    }
}

fn the_machine_is_out_of_reach(rights: &Rights) {
    let (a, _b, _ferry) = pair(rights, &client(), &server());
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let local = listener.local_addr().expect("an address").to_string();
    let name = format!("swell-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).expect("a short name");
    let _abstract = UnixListener::bind_addr(&address).expect("listen");
    // Outside the host both can be reached; otherwise the test would prove nothing.
    assert!(TcpStream::connect(&local).is_ok());
    assert!(UnixStream::connect_addr(&address).is_ok());
    assert_eq!(ask(&a, &["connect", &local]), "ConnectionRefused");
    assert_eq!(
        ask(&a, &["connect-unix", &format!("@{name}")]),
        "ConnectionRefused"
    );
    let path = format!("/run/{name}");
    match UnixListener::bind(&path) {
        Ok(_listener) => {
            let answer = ask(&a, &["connect-unix", &path]);
            fs::remove_file(&path).expect("it was just made");
            assert_eq!(answer, "NotFound");
        }
        // Only root may make sockets there, and root runs the same test.
        Err(e) if rights.rootless() => println!("skipped: sockets below /run: {e}"),
        Err(e) => panic!("{path}: {e}"),
    }
    // A packet to an unassigned address goes to the device and is lost there.
    let answer = ask(&a, &["connect", "192.0.2.1:80"]);
    assert_eq!(answer, "TimedOut");
}

fn two_emulations(rights: &Rights) {
    let (a1, b1, _ferry1) = pair(rights, &client(), &server());
    let (a2, _b2, _ferry2) = pair(rights, &client(), &server());
    let to = SocketAddr::new(ip("10.9.0.2"), 80);
    let _listener = b1
        .enter(|| TcpListener::bind(to))
        .expect("enter")
        .expect("listen");
    assert_eq!(ask(&a1, &["connect", "10.9.0.2:80"]), "connected");
    assert_eq!(ask(&a2, &["connect", "10.9.0.2:80"]), "ConnectionRefused");
}

fn congestion_control(rights: &Rights) {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .expect("Linux has this file");
    for name in ["cubic", "reno", "bbr"] {
        if !available.split_whitespace().any(|known| known == name) {
            println!("skipped: {name}, which this kernel does not have");
            continue;
        }
        let mut config = client();
        config.congestion_control = name.into();
        let (a, b, _ferry) = pair(rights, &config, &server());
        assert_eq!(a.congestion_controls().expect("routes"), [name, name]);
        let to = SocketAddr::new(ip("10.9.0.2"), 80);
        let listener = b
            .enter(|| TcpListener::bind(to))
            .expect("enter")
            .expect("listen");
        let connection = a
            .enter(|| TcpStream::connect(to))
            .expect("enter")
            .expect("connect");
        let (accepted, _) = listener.accept().expect("a connection");
        let in_force =
            |s: &TcpStream| rustix::net::sockopt::tcp_congestion(s).expect("a TCP socket has one");
        assert_eq!(in_force(&connection), name);
        assert_eq!(
            in_force(&accepted),
            "cubic",
            "the server did not ask for {name}"
        );
    }
    let mut config = client();
    config.congestion_control = "nonesuch".into();
    let answer = Host::create(rights, &config).map(|_| ());
    assert!(
        matches!(&answer, Err(Error::CongestionControl { asked, .. }) if asked == "nonesuch"),
        "{answer:?}"
    );
}

fn an_idle_host_sends_nothing(rights: &Rights) {
    let (_host, mut device) = Host::create(rights, &client()).expect("a host");
    thread::sleep(Duration::from_millis(1500));
    let mut packets = Vec::new();
    while device
        .read(&mut |wire| {
            let bytes = [wire.header, wire.payload].concat();
            packets.push((bytes, wire.checksum == Checksum::Full));
        })
        .expect("a device can be read")
        > 0
    {}
    assert_eq!(packets, []);
}

/// A loop that was delayed learns from the kernel when packets arrived, with a TUN device and with a veth.
fn stamps_are_of_their_time(rights: &Rights) {
    let (host, mut device) = Host::create(rights, &client()).expect("a host");
    assert!(device.stamps());
    let socket = host
        .enter(|| UdpSocket::bind((ip("10.9.0.1"), 0)))
        .expect("enter")
        .expect("bind");
    let mut sent = Vec::new();
    for size in 1..=50 {
        let before = epoch();
        // All but every fifth have the same size and content.
        let length = if size % 5 == 0 { size } else { 3 };
        socket
            .send_to(&vec![7; length], (ip("10.9.0.2"), 9))
            .expect("send");
        sent.push((length, before, epoch()));
        thread::sleep(Duration::from_millis(2));
    }
    for (number, (length, before, after)) in sent.into_iter().enumerate() {
        let mut bytes = 0;
        let each =
            &mut |wire: swell_host::IpPacket<'_>| bytes = wire.header.len() + wire.payload.len();
        assert_eq!(device.read(each).expect("a device can be read"), 1);
        assert_eq!(bytes, 28 + length);
        let stamp = device.stamp().expect("a stamp");
        let late = stamp.saturating_sub(after);
        // A veth takes the stamp where the packet leaves it, because the kernel may queue the packet before that.
        assert!(
            stamp >= before && (late == 0 || VETH.load(Ordering::Relaxed)),
            "packet {number}: {before} {stamp} {after}"
        );
        // `empty` is never true while a packet waits; for a veth only the kernel knows.
        let all = number == 49 && !VETH.load(Ordering::Relaxed);
        assert_eq!(device.empty(), all, "packet {number}");
    }
}

/// After all the tests above, nothing is missing and nothing is left over.
fn the_doctor_sees_what_works(rights: &Rights) {
    if rights.rootless() && VETH.load(Ordering::Relaxed) {
        // The doctor's test processes start inside our user namespace: see `kill_9_leaves_nothing`.
        println!(
            "skipped: the doctor in a nested user namespace without TUN: veths are not permitted"
        );
        return;
    }
    let findings = examine(Path::new("/proc/self/exe"));
    for finding in &findings {
        assert_ne!(finding.state, State::Missing, "{finding:?}");
    }
    assert!(
        findings
            .iter()
            .any(|f| f.what == "leftovers" && f.detail == "none"),
        "{findings:?}"
    );
}
