//! Hosts: network namespaces whose only way out is a device that this process holds.
//!
//! A [`Host`] is what a program sees as its machine; its [`Device`] is the other end of the only cable. What
//! the host sends is read from the device as packets of the wire, what is written to the device the host
//! receives. Whoever ferries packets between devices is the network.
//!
//! ```no_run
//! use std::process::ExitCode;
//! use swell_host::Nic;
//! use swell_host::{Host, HostConfig, Program, Rights, helper_main};
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
//! Nothing has a name outside: namespaces are held by a process and by open files, the device by its file
//! descriptor. When this process ends, in whichever way, the kernel ends the first process of every host,
//! with it everything that runs there, and then the namespaces and devices are gone. So there is nothing to
//! clean up, and two emulations cannot meet.
//!
//! *Not promised*: a host keeps programs from the network, not from the machine. Files are shared except
//! for /run and the files of name resolution, and root outside is root inside.

mod cable;
pub mod clock;
mod config;
mod device;
pub mod doctor;
mod error;
mod helper;
mod inside;
mod interface;
mod lateness;
mod merge;
mod netlink;
mod pressure;
mod program;
mod rights;
mod routed;
mod router;
mod sched;
pub mod scratch;
mod segment;
mod sum;
pub mod sys;
mod tables;
mod way;
mod wire;

pub use cable::{CABLE, CableEnd, cable};
pub use config::HostConfig;
pub use device::{Device, DeviceConfig, Offload};
pub use error::Error;
pub use helper::helper_main;
pub use interface::{Interface, InterfaceFacts};
pub use lateness::{Late, Lateness};
pub use netlink::TokenBucket;
pub use pressure::Pressure;
pub use program::{Process, Program, Stream};
pub use rights::Rights;
pub use routed::Routed;
pub use router::Counters;
pub use sched::{Precision, be_punctual};
pub use segment::{SegmentError, segment};
pub use tables::{HostLoss, Listening};
pub use way::{DEVICE_NAME, DeviceKind};
pub use wire::{Checksum, ETHERNET, Nic, Wire, network, rewrite};

use error::During;
use netlink::{LOOPBACK, Netlink};
use netlink_packet_route::link::{LinkAttribute, LinkFlags};
use program::{SharedChild, connect, lock};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A network namespace with a first process, alive as long as this value, at most as long as this process.
pub struct Host {
    name: String,
    helper: PathBuf,
    namespaces: Namespaces,
    init: Child,
    control: UnixStream,
    programs: Mutex<Vec<SharedChild>>,
    netlink: Mutex<Netlink>,
    device: u32,
    /// The thread whose end would end the first process; it waits for this sender to be dropped.
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
    /// Makes a host and its device. The device works from any thread, also after the host has gone.
    pub fn create(_: &Rights, config: &HostConfig) -> Result<(Host, Device), Error> {
        config.check()?;
        let own = config.clone();
        let (stop, stopped) = mpsc::channel::<()>();
        let (made, result) = mpsc::sync_channel(1);
        // The signal that ends the first process comes when the *thread* that made it ends
        // (PR_SET_PDEATHSIG(2const)), so a thread of the host's own makes it and stays.
        let keeper = thread::Builder::new()
            .name(format!("host {}", config.name))
            .spawn(move || {
                let answer = make(&own);
                let succeeded = answer.is_ok();
                if made.send(answer).is_ok() && succeeded {
                    // Nothing is ever sent: the error is the other end's disappearance.
                    let _ = stopped.recv();
                }
            })
            .during(&config.name, "start a thread")?;
        let Ok(answer) = result.recv() else {
            // The thread ended without an answer, so it panicked, and that is a fault of ours.
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

    /// Starts a program inside. A program that does not exist or cannot be executed is an error here, with
    /// its name.
    pub fn spawn(&self, program: Program) -> Result<Process, Error> {
        let name = program.name();
        self.start(program).map_err(|e| program_failed(&name, e))
    }

    /// Runs `work` on a thread whose network is the host's. Sockets made there stay the host's wherever they
    /// are used. Only the network differs: files and names are those outside.
    pub fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> io::Result<R> {
        self.beside(false, || Ok(work()))
    }

    /// A descriptor of its network namespace, to make sockets there.
    ///
    /// # Errors
    /// Where this process has no more descriptors.
    pub fn network(&self) -> io::Result<OwnedFd> {
        Ok(self.namespaces.net.try_clone()?.into())
    }

    /// The congestion control of each default route (one per family of addresses), as the kernel says.
    pub fn congestion_controls(&self) -> io::Result<Vec<String>> {
        self.netlink
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .congestion_controls(self.device)
    }

    /// Runs `work` on a thread in the network namespace, and if wanted with children in the process
    /// namespace.
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
        let directory = match program.directory {
            Some(directory) => directory,
            None => std::env::current_dir()?,
        };
        let (stdin, our_stdin) = connect(program.stdin, 0)?;
        let (stdout, our_stdout) = connect(program.stdout, 1)?;
        let (stderr, our_stderr) = connect(program.stderr, 2)?;
        let (mut ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(&self.helper);
        command
            .args([helper::HELPER, helper::RUN])
            .arg(directory)
            .args(&program.argv)
            .envs(program.env)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if !program.foreground {
            command.process_group(0);
        }
        let child = self.beside(true, || command.spawn())?;
        // Our copy of the helper's end of the socket is in the command.
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
        // The socket closes when the program takes the helper's place; before that only a reason for failure
        // can come.
        let mut reason = Vec::new();
        ours.read_to_end(&mut reason)?;
        match reason.first_chunk() {
            None => Ok(process),
            Some(code) => {
                process.wait()?;
                Err(io::Error::from_raw_os_error(i32::from_ne_bytes(*code)))
            }
        }
    }
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
    /// Ends everything that runs in the host.
    fn drop(&mut self) {
        let _ = self.control.shutdown(Shutdown::Both);
        let _ = self.init.kill();
        // The first process stays until every process of its namespace was reaped, and programs are ours to
        // reap. They die with it; a signal each spares the wait for that.
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

/// Makes a host; the calling thread's network is the host's from then on.
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

/// Starts the first process and waits until it has arranged what is seen inside.
fn start_init(config: &HostConfig) -> Result<(Child, UnixStream), Error> {
    let name = config.name.as_str();
    let (mut ours, theirs) = UnixStream::pair().during(name, "make a socket")?;
    let child = Command::new(&config.helper)
        .args([helper::HELPER, helper::INIT])
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        // Ctrl-C is for programs, not for the host under them.
        .process_group(0)
        .spawn()
        .during(name, "start the first process")?;
    let mut child = Unborn(Some(child));
    let texts = [
        config.name.clone(),
        config.hosts_file(),
        config.resolv_file(),
        config.nsswitch_line(),
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

/// A first process of which no [`Host`] is made yet: it ends where an error ends the making.
struct Unborn(Option<Child>);

impl Drop for Unborn {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Links, addresses, routes and settings of the calling thread's network namespace.
fn connect_network(config: &HostConfig, netlink: &mut Netlink, device: u32) -> Result<(), Error> {
    let name = config.name.as_str();
    let has_v6 = config.source(true).is_some() || config.local.iter().any(|p| p.addr().is_ipv6());
    for (path, value, needed) in settings(has_v6) {
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
    // For ping without privileges (icmp(7)); in a user namespace the kernel knows one group only.
    let group = rustix::process::getegid().as_raw();
    if write_setting("ipv4/ping_group_range", "0 2147483647").is_err() {
        let _ = write_setting("ipv4/ping_group_range", &format!("{group} {group}"));
    }
    // Connections over the loopback follow the namespace's own setting. It may be refused, where the
    // machine does not allow the algorithm to everyone; the routes below decide what goes out.
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

/// A new IPv6 address is tentative until a worker of the kernel has seen it, even without duplicate
/// detection (net/ipv6/addrconf.c, `addrconf_dad_begin`). What comes for it before is dropped.
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

/// How long the kernel may take for what it does in the background: far more than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Files below /proc/sys/net, what they must hold, and whether a host is wrong without.
fn settings(v6: bool) -> Vec<(&'static str, &'static str, bool)> {
    // A new namespace takes some of these from the machine (net.core.devconf_inherit_init_net).
    let mut all = vec![
        ("ipv4/ip_forward", "0", false),
        ("ipv4/conf/all/rp_filter", "0", false),
        ("ipv4/conf/default/rp_filter", "0", false),
        ("ipv4/conf/swell0/rp_filter", "0", false),
        // What one connection learnt about the path must not decide how the next begins.
        ("ipv4/tcp_no_metrics_save", "1", false),
    ];
    if v6 {
        all.extend([
            ("ipv6/conf/all/disable_ipv6", "0", false),
            ("ipv6/conf/swell0/disable_ipv6", "0", false),
            ("ipv6/conf/all/forwarding", "0", false),
            // Without it no address of a local prefix can be bound; IPv4 does not ask.
            ("ipv6/ip_nonlocal_bind", "1", true),
        ]);
    }
    // Nothing may be sent that no program sent: no link-local address, so no solicitations and no reports.
    all.extend([
        ("ipv6/conf/swell0/addr_gen_mode", "1", false),
        ("ipv6/conf/swell0/accept_ra", "0", false),
        ("ipv6/conf/swell0/router_solicitations", "0", false),
    ]);
    all
}

/// Writes a setting of the calling thread's network namespace.
fn write_setting(path: &str, value: &str) -> io::Result<()> {
    fs::write(Path::new("/proc/sys/net").join(path), value)
}

/// Lets the largest of TCP's buffers be of so many bytes at least (tcp(7): least, first, largest).
fn raise_buffers(bytes: u64) -> io::Result<()> {
    for path in ["ipv4/tcp_rmem", "ipv4/tcp_wmem"] {
        let text = fs::read_to_string(Path::new("/proc/sys/net").join(path))?;
        let sizes: Vec<&str> = text.split_whitespace().collect();
        if let [least, first, largest] = sizes[..]
            && largest.parse::<u64>().is_ok_and(|now| now < bytes)
        {
            write_setting(path, &format!("{least} {first} {bytes}"))?;
        }
    }
    Ok(())
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
