//! Hosts: network namespaces that are connected only to a device held by this process.
//!
//! A [`Host`] is what a program sees as its machine. Its [`Device`] is the other end of its only link: packets that
//! the host sends are read from the device, and packets written to the device are received by the host. The code that
//! moves packets between devices is the network.
//!
//! ```no_run
//! use std::process::ExitCode;
//! use swell_host::{Host, HostConfig, Nic, Program, Rights, helper_main};
//!
//! fn main() -> ExitCode {
//!     // The first process of a host, and the one that turns into a program, are this executable again.
//!     if let Some(code) = helper_main() {
//!         return code;
//!     }
//!     let rights = Rights::obtain().expect("an example has no better idea");
//!     let config = HostConfig::new("client", ["10.0.0.1".parse().unwrap()]);
//!     let (host, mut device) = Host::create(&rights, &config).unwrap();
//!     let mut ping = host.spawn(Program::new(["ping", "-c1", "10.0.0.2"])).unwrap();
//!     while ping.try_wait().unwrap().is_none() {
//!         device.read(&mut |packet| eprintln!("{} bytes", packet.header.len())).unwrap();
//!     }
//!     ExitCode::SUCCESS
//! }
//! ```
//!
//! Nothing has a global name. A process and open files hold the namespaces, and a file descriptor holds the device.
//! When this process ends, for any reason, the kernel kills the first process of every host, and with it everything
//! that runs there. The namespaces and devices then disappear. So there is nothing to clean up, and two emulations
//! cannot interfere.
//!
//! *Not promised*: a host isolates programs from the network, not from the machine. Files are shared, except /run and
//! the files of name resolution, and root inside is root outside.

mod cable;
pub mod clock;
mod config;
mod device;
pub mod doctor;
mod error;
mod gateway;
mod helper;
mod inside;
mod interface;
mod lateness;
mod masquerade;
mod merge;
mod netlink;
mod orphans;
mod pressure;
mod probe;
mod program;
mod rights;
mod routed;
mod router;
mod routes;
mod sched;
pub mod scratch;
mod segment;
mod setting;
mod sum;
pub mod sys;
mod tables;
mod way;
mod wire;

pub use cable::{CABLE, CableEnd, cable};
pub use config::HostConfig;
pub use device::{Device, DeviceConfig, Offload};
pub use error::Error;
pub use gateway::{Gateway, Uplink};
pub use helper::helper_main;
pub use interface::{Interface, InterfaceFacts};
pub use lateness::{Late, Lateness};
pub use netlink::TokenBucket;
pub use pressure::Pressure;
pub use program::{Process, Program, Stream};
pub use rights::Rights;
pub use routed::Routed;
pub use router::Counters;
pub use routes::Routes;
pub use sched::{Precision, be_punctual};
pub use segment::{SegmentError, segment};
pub use tables::{HostLoss, Listening};
pub use way::{DEVICE_NAME, DeviceKind};
pub use wire::{Checksum, ETHERNET, IpPacket, Nic, network, rewrite};

use error::During;
use netlink::{LOOPBACK, Netlink};
use netlink_packet_route::link::{LinkAttribute, LinkFlags};
use program::{SharedChild, connect, lock};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use setting::{raise_buffers, write_setting};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The environment variable that tells programs in hosts the process that emulates their network.
pub const OWNER: &str = "SWELL_PID";

/// A network namespace with its first process. It lives as long as this value, and at most as long as this process.
pub struct Host {
    name: String,
    helper: PathBuf,
    namespaces: Namespaces,
    init: Child,
    control: UnixStream,
    programs: Mutex<Vec<SharedChild>>,
    netlink: Mutex<Netlink>,
    device: u32,
    /// The thread whose end would kill the first process. It waits until this sender is dropped.
    keeper: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

/// Open files of /proc/PID/ns.
struct Namespaces {
    net: File,
    pid: File,
    mount: File,
    uts: File,
    ipc: File,
}

impl Host {
    /// Creates a host and its device. The device works from any thread, even after the host is gone.
    pub fn create(_: &Rights, config: &HostConfig) -> Result<(Host, Device), Error> {
        config.check()?;
        let own = config.clone();
        let (stop, stopped) = mpsc::channel::<()>();
        let (made, result) = mpsc::sync_channel(1);
        // The signal that kills the first process is sent when the *thread* that created it ends
        // (PR_SET_PDEATHSIG(2const)). Hence each host has its own thread, which creates the process and stays.
        let keeper = thread::Builder::new()
            .name(format!("host {}", config.name))
            .spawn(move || {
                let answer = make(&own);
                let succeeded = answer.is_ok();
                if made.send(answer).is_ok() && succeeded {
                    // Nothing is ever sent: `recv` returns an error when the sender is dropped.
                    let _ = stopped.recv();
                }
            })
            .during(&config.name, "start a thread")?;
        let Ok(answer) = result.recv() else {
            // The thread ended without an answer, so it panicked. That is a bug of this crate.
            return match keeper.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => Err(io::Error::other("no answer")).during(&config.name, "make it"),
            };
        };
        let (mut host, device) = answer?;
        host.keeper = Some((stop, keeper));
        Ok((host, device))
    }

    /// The host's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts a program inside. Returns an error with the program's name if it does not exist or cannot be executed.
    pub fn spawn(&self, program: Program) -> Result<Process, Error> {
        let name = program.name();
        self.start(program).map_err(|e| program_failed(&name, e))
    }

    /// Runs `work` on a thread in the host's network namespace. Sockets created there remain the host's wherever they
    /// are used. Only the network differs: files and names are those outside.
    pub fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> io::Result<R> {
        self.beside(false, || Ok(work()))
    }

    /// A descriptor of the network namespace, for creating sockets there.
    ///
    /// # Errors
    /// If this process is out of descriptors.
    pub fn network(&self) -> io::Result<OwnedFd> {
        Ok(self.namespaces.net.try_clone()?.into())
    }

    /// The congestion control of each default route (one per address family), as read from the kernel.
    pub fn congestion_controls(&self) -> io::Result<Vec<String>> {
        self.netlink
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .congestion_controls(self.device)
    }

    /// Runs `work` on a thread in the network namespace. If `processes` is set, its children are created in the
    /// process namespace.
    fn beside<R: Send>(
        &self,
        processes: bool,
        work: impl FnOnce() -> io::Result<R> + Send,
    ) -> io::Result<R> {
        let job = || {
            move_into_link_name_space(
                self.namespaces.net.as_fd(),
                Some(LinkNameSpaceType::Network),
            )?;
            if processes {
                move_into_link_name_space(
                    self.namespaces.pid.as_fd(),
                    Some(LinkNameSpaceType::ProcessID),
                )?;
            }
            work()
        };
        thread::scope(|scope| {
            thread::Builder::new()
                .name(format!("in {}", self.name))
                .spawn_scoped(scope, job)?
                .join()
                .unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    fn start(&self, program: Program) -> io::Result<Process> {
        if program.argv.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        }
        // Only the program itself may be what does not exist, so other errors say what failed.
        let during =
            |step: &'static str| move |e: io::Error| io::Error::other(format!("{step}: {e}"));
        let directory = match program.directory {
            Some(directory) => directory,
            None => std::env::current_dir().map_err(during("the working directory"))?,
        };
        let streams = during("its standard streams");
        let (stdin, our_stdin) = connect(program.stdin, 0).map_err(streams)?;
        let (stdout, our_stdout) = connect(program.stdout, 1).map_err(streams)?;
        let (stderr, our_stderr) = connect(program.stderr, 2).map_err(streams)?;
        let found = found(&program.argv[0], &directory, &program.env);
        let (mut ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(&self.helper);
        command
            .args([helper::HELPER, helper::RUN])
            .arg(&directory)
            .args(&program.argv)
            .env(OWNER, std::process::id().to_string())
            .envs(program.env)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if !program.foreground {
            command.process_group(0);
        }
        let child = self
            .beside(true, || command.spawn())
            .map_err(during("the helper process"))?;
        // The command still holds our copy of the helper's end of the socket.
        drop(command);
        let n = &self.namespaces;
        let mut process = Process::new(
            child,
            !program.foreground,
            [our_stdin, our_stdout, our_stderr],
        )?;
        self.programs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(process.child());
        helper::send(
            &ours,
            [
                stdin.as_fd(),
                stdout.as_fd(),
                stderr.as_fd(),
                n.mount.as_fd(),
                n.uts.as_fd(),
                n.ipc.as_fd(),
            ],
        )?;
        // The socket closes when the helper executes the program. Before that, it only delivers the reason of a
        // failure.
        let mut reason = Vec::new();
        ours.read_to_end(&mut reason)?;
        match reason.first_chunk() {
            None => Ok(process),
            Some(code) => {
                process.wait()?;
                let code = i32::from_ne_bytes(*code);
                let error = io::Error::from_raw_os_error(code.abs());
                match code {
                    libc::ENOENT if found => Err(io::Error::other(
                        "the interpreter or loader that it names does not exist",
                    )),
                    0.. => Err(error),
                    _ => Err(io::Error::other(format!(
                        "its directory `{}`: {error}",
                        directory.display()
                    ))),
                }
            }
        }
    }
}

/// Whether there is a file of this name: in the directory if the name has a slash, else in a folder of PATH.
fn found(name: &OsStr, directory: &Path, env: &[(OsString, OsString)]) -> bool {
    if name.as_bytes().contains(&b'/') {
        return directory.join(name).exists();
    }
    let own = env.iter().rev().find(|(key, _)| key == "PATH");
    let path = own.map(|(_, value)| value.clone());
    let path = path.or_else(|| std::env::var_os("PATH"));
    path.is_some_and(|all| {
        std::env::split_paths(&all).any(|p| directory.join(p).join(name).is_file())
    })
}

fn program_failed(program: &str, error: io::Error) -> Error {
    Error::Program {
        program: program.into(),
        reason: match error.raw_os_error() {
            Some(libc::ENOENT) => "there is no such program".into(),
            Some(libc::EACCES) => "this user may not execute it".into(),
            _ => error.to_string(),
        },
        code: match error.raw_os_error() {
            Some(libc::ENOENT) => 127,
            _ => 126,
        },
    }
}

impl Drop for Host {
    /// Kills everything that runs in the host.
    fn drop(&mut self) {
        let _ = self.control.shutdown(Shutdown::Both);
        let _ = self.init.kill();
        // The first process exists until every process of its namespace was reaped, and programs are children of this
        // process. They die with the first process; killing each of them avoids waiting for that.
        let programs = self
            .programs
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        for program in programs.drain(..) {
            let mut child = lock(&program);
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = self.init.wait();
        if let Some((stop, keeper)) = self.keeper.take() {
            drop(stop);
            let _ = keeper.join();
        }
    }
}

/// Creates a host and moves the calling thread into its network namespace.
fn make(config: &HostConfig) -> Result<(Host, Device), Error> {
    let name = config.name.as_str();
    sys::devices::unshare(UnshareFlags::NEWNET | UnshareFlags::NEWPID).map_err(|e| match e {
        rustix::io::Errno::PERM | rustix::io::Errno::NOSPC => rights::refused(e.into()),
        _ => Error::Step {
            host: name.into(),
            step: "make namespaces".into(),
            source: e.into(),
        },
    })?;
    let net = File::open("/proc/thread-self/ns/net").during(name, "open the namespace")?;
    let mut netlink = Netlink::open().during(name, "open a netlink socket")?;
    let device = Device::open(&config.device).during(name, "open the device")?;
    connect_network(config, &mut netlink, device.index())?;
    let (init, control) = start_init(config)?;
    let mut init = Unborn(Some(init));
    let pid = init.0.as_ref().map_or(0, Child::id);
    let open = |kind: &str| {
        File::open(format!("/proc/{pid}/ns/{kind}"))
            .during(name, format!("open its {kind} namespace"))
    };
    let namespaces = Namespaces {
        net,
        pid: open("pid")?,
        mount: open("mnt")?,
        uts: open("uts")?,
        ipc: open("ipc")?,
    };
    let Some(init) = init.0.take() else {
        return Err(io::Error::other("no first process")).during(name, "make it");
    };
    let host = Host {
        name: config.name.clone(),
        helper: config.helper.clone(),
        namespaces,
        init,
        control,
        programs: Mutex::default(),
        netlink: Mutex::new(netlink),
        device: device.index(),
        keeper: None,
    };
    Ok((host, device))
}

/// Starts the first process and waits until it has set up the view from inside.
fn start_init(config: &HostConfig) -> Result<(Child, UnixStream), Error> {
    let name = config.name.as_str();
    let (mut ours, theirs) = UnixStream::pair().during(name, "make a socket")?;
    let child = Command::new(&config.helper)
        .args([helper::HELPER, helper::INIT])
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        // Ctrl-C is meant for programs, not for the host.
        .process_group(0)
        .spawn()
        .during(name, "start the first process")?;
    let mut child = Unborn(Some(child));
    let texts = [
        config.name.clone(),
        config.hosts_file(),
        config::RESOLV_FILE.to_owned(),
        config::NSSWITCH_LINE.to_owned(),
    ];
    for text in texts {
        helper::write_text(&mut ours, &text).during(name, "tell the first process")?;
    }
    let answer = helper::read_text(&mut ours).during(name, "hear from the first process")?;
    if let Some((code, step)) = answer.split_once('\n') {
        let code = code.parse().unwrap_or(libc::EIO);
        return Err(io::Error::from_raw_os_error(code)).during(name, step);
    }
    match child.0.take() {
        Some(child) => Ok((child, ours)),
        None => Err(io::Error::other("no first process")).during(name, "make it"),
    }
}

/// A first process without a [`Host`]: it is killed if creating the host fails.
struct Unborn(Option<Child>);

impl Drop for Unborn {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sets up links, addresses, routes and settings of the calling thread's network namespace.
fn connect_network(config: &HostConfig, netlink: &mut Netlink, device: u32) -> Result<(), Error> {
    let name = config.name.as_str();
    let prefix_v6 = config.local.iter().any(|p| p.addr().is_ipv6());
    let has_v6 = config.source(true).is_some() || prefix_v6;
    for (path, value, needed) in settings(has_v6, prefix_v6) {
        let step = || format!("write /proc/sys/net/{path}");
        match write_setting(path, value) {
            Err(e) if needed => return Err(e).during(name, step()),
            _ => {}
        }
    }
    for (path, value) in &config.sysctls {
        write_setting(path, value)
            .during(name, format!("write {value} to /proc/sys/net/{path}"))?;
    }
    raise_buffers(config.tcp_buffers).during(name, "let TCP's buffers grow")?;
    // For ping without privileges (icmp(7)). In a user namespace only one group is mapped.
    let group = rustix::process::getegid().as_raw();
    if write_setting("ipv4/ping_group_range", "0 2147483647").is_err() {
        let _ = write_setting("ipv4/ping_group_range", &format!("{group} {group}"));
    }
    // Connections over the loopback device use the namespace's own setting. It may be refused if the machine
    // restricts the algorithm. The routes below set it for all other connections.
    let _ = write_setting("ipv4/tcp_congestion_control", &config.congestion_control);
    netlink
        .raise(LOOPBACK)
        .during(name, "bring the loopback up")?;
    netlink
        .set_link(
            device,
            LinkFlags::Up,
            vec![
                LinkAttribute::Mtu(u32::from(config.device.mtu)),
                LinkAttribute::TxQueueLen(config.device.queue),
            ],
        )
        .during(name, "bring the device up")?;
    for &address in &config.addresses {
        netlink
            .add_address(device, address)
            .during(name, format!("add the address {address}"))?;
    }
    for &prefix in &config.local {
        netlink
            .add_local(prefix)
            .during(name, format!("add the prefix {prefix}"))?;
    }
    for source in [config.source(false), config.source(true)]
        .into_iter()
        .flatten()
    {
        netlink
            .add_default(device, source, &config.congestion_control)
            .map_err(|e| unknown_congestion_control(config, e))?;
    }
    await_addresses(config, netlink)
}

/// A new IPv6 address is tentative until a kernel worker has processed it, even without duplicate address detection
/// (net/ipv6/addrconf.c, `addrconf_dad_begin`). Packets for it are dropped until then.
fn await_addresses(config: &HostConfig, netlink: &mut Netlink) -> Result<(), Error> {
    let start = Instant::now();
    for &address in &config.addresses {
        let step = || format!("wait for the address {address}");
        while !netlink.is_local(address).during(&config.name, step())? {
            if start.elapsed() > PATIENCE {
                return Err(io::Error::from(io::ErrorKind::TimedOut)).during(&config.name, step());
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}

/// Time limit for background work of the kernel, far more than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Files below /proc/sys/net, their values, and whether the host is unusable without them.
fn settings(v6: bool, prefix_v6: bool) -> Vec<(&'static str, &'static str, bool)> {
    // A new namespace inherits some of these from the machine (net.core.devconf_inherit_init_net).
    let mut all = vec![
        ("ipv4/ip_forward", "0", false),
        ("ipv4/conf/all/rp_filter", "0", false),
        ("ipv4/conf/default/rp_filter", "0", false),
        ("ipv4/conf/swell0/rp_filter", "0", false),
        // Metrics cached from one connection must not affect the start of the next. Its port is free after a second.
        ("ipv4/tcp_no_metrics_save", "1", false),
        ("ipv4/tcp_tw_reuse", "1", false),
        // icmp(7): the default, without the bit of destination unreachable. Every datagram to a closed port is refused.
        ("ipv4/icmp_ratemask", "6160", false),
    ];
    if v6 {
        all.extend([
            ("ipv6/conf/all/disable_ipv6", "0", false),
            ("ipv6/conf/swell0/disable_ipv6", "0", false),
            ("ipv6/conf/all/forwarding", "0", false),
            // All types but destination unreachable and packet too big (RFC 4443 section 2.1).
            ("ipv6/icmp/ratemask", "0,3-127", false),
        ]);
    }
    if prefix_v6 {
        // Without it no address of a local prefix can be bound; IPv4 does not need it. Other hosts refuse to bind
        // addresses that they do not have.
        all.push(("ipv6/ip_nonlocal_bind", "1", true));
    }
    // Only programs may send: no link-local address, so no router solicitations and no multicast reports.
    all.extend([
        ("ipv6/conf/swell0/addr_gen_mode", "1", false),
        ("ipv6/conf/swell0/accept_ra", "0", false),
        ("ipv6/conf/swell0/router_solicitations", "0", false),
    ]);
    all
}

fn unknown_congestion_control(config: &HostConfig, error: io::Error) -> Error {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default();
    let asked = &config.congestion_control;
    if available.split_whitespace().any(|known| known == asked) {
        return Error::Step {
            host: config.name.clone(),
            step: "add the default route".into(),
            source: error,
        };
    }
    Error::CongestionControl {
        host: config.name.clone(),
        asked: asked.clone(),
        available: available.trim().into(),
    }
}
