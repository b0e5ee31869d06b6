//! The event loop: timers, kernel events, workloads.

mod turn;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};
use swell_base::{Dur, EventQueue, Ranked, Side, Stream, Time, Warning};
use swell_tcp::Config as TcpConfig;
use swell_workload::{Action, Conn, Event, Info, Open, Record, Sample, Workload};

use super::SocketsError;
use super::addresses::{Paths, Pool};
use super::descriptors::Descriptors;
use super::report::{Counts, Report};
use super::settings::Settings;
use super::side::{SideConfig, Sockets, try_address};
use super::slots::{Kind, Listener, Slots, Window};
use swell_host::Lateness;

/// Configuration of a carrier.
pub struct CarrierConfig {
    /// Hosts on the left and on the right.
    pub sides: [SideConfig; 2],
    /// Notified of addresses, if set.
    pub paths: Option<Box<dyn Paths>>,
    /// The instant of time zero. `None`: the first call of [`Carrier::run`].
    pub epoch: Option<Instant>,
}

impl Default for CarrierConfig {
    /// Both sides on the loopback network of the current namespace.
    fn default() -> Self {
        CarrierConfig {
            sides: [Side::Left, Side::Right].map(SideConfig::loopback),
            paths: None,
            epoch: None,
        }
    }
}

/// The reason why [`Carrier::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The requested time was reached.
    Time,
    /// The stop flag was set.
    Stopped,
}

/// Runs workloads over kernel sockets. See the [crate's front page](super).
pub struct Carrier {
    pub(super) epoll: OwnedFd,
    epoch: Option<Instant>,
    /// The instant of the event being delivered.
    pub(super) at: Time,
    pub(super) sides: [SideState; 2],
    pub(super) paths: Option<Box<dyn Paths>>,
    pub(super) slots: Slots,
    pub(super) workers: Vec<Worker>,
    pub(super) listeners: Vec<Listener>,
    /// Connections whose server end was not accepted yet, by client socket address and server address.
    pub(super) waiting: HashMap<(SocketAddr, IpAddr), u32>,
    pub(super) queue: EventQueue<Wake>,
    inbox: VecDeque<(u32, Event)>,
    /// Ends and listeners that used up their share and have more to do.
    pub(super) ready: VecDeque<u64>,
    actions: Vec<Action>,
    /// Buffer for reads. The kernel discards the data, so nothing is written here.
    pub(super) sink: Vec<u8>,
    /// The data of all writes.
    pub(super) payload: Vec<u8>,
    pub(super) descriptors: Descriptors,
    pub(super) counts: Counts,
    /// Failures and refused datagrams by error number.
    pub(super) failures: BTreeMap<i32, u64>,
    pub(super) refusals: BTreeMap<i32, u64>,
    lateness: Lateness,
    warnings: Vec<Warning>,
    next_sweep: Time,
    started: bool,
}

/// An item of the timer queue.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wake {
    Timer {
        worker: u32,
        token: u64,
    },
    /// Frees what is left of the connection that this token stands for.
    Reap(u64),
    /// Retries to accept on the listener with this token.
    Accept(u64),
}

impl Ranked for Wake {}

/// A workload and its state.
pub(super) struct Worker {
    machine: Box<dyn Workload>,
    pub settings: Settings,
    pub open: Window,
    /// Its listeners, by side and family.
    pub listeners: [[Option<u32>; 2]; 2],
}

/// Sockets and addresses of one side.
pub(super) struct SideState {
    pub sockets: Box<dyn Sockets>,
    /// IPv4 and IPv6.
    pub pools: [Option<Pool>; 2],
    pub device: Option<String>,
}

/// Bit that marks the token of a listener.
pub(super) const LISTENER: u64 = 1 << 63;
/// Maximum number of bytes that one read discards.
const SINK: usize = 1 << 20;
/// Maximum size of one write; at least the largest datagram.
const PAYLOAD: usize = 256 << 10;
/// Maximum number of events per call of `epoll_wait`.
const NEWS: usize = 512;
/// Maximum number of timers that run before the next call of `epoll_wait`.
const TIMERS: usize = 256;
/// The kernel is asked for events between timers that are further apart than this, however late the loop is. What one
/// of them sends may have arrived long ago.
const SPAN: Dur = Dur::from_millis(1);
/// Interval at which the stop flag is checked when nothing happens.
const PATIENCE: Dur = Dur::from_millis(50);
/// Interval at which connections that wait for an acknowledgement are checked. This finds an acknowledgement whose
/// notification the kernel dropped for lack of memory.
const SWEEP: Dur = Dur::from_secs(1);

impl Carrier {
    /// A carrier without workloads. Raises the soft limit of descriptors to the hard limit.
    ///
    /// # Errors
    /// If the kernel provides no descriptors, or no socket can be bound to an address of a side.
    pub fn new(config: CarrierConfig) -> Result<Carrier, SocketsError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(SocketsError::Epoll)?;
        let (descriptors, warning) = Descriptors::raised()?;
        let sides = config.sides.map(|side| SideState {
            sockets: side.sockets,
            pools: [Some(Pool::new(side.ipv4)), side.ipv6.map(Pool::new)],
            device: side.device,
        });
        let mut random = Stream::new(0, "sockets/payload");
        let payload = (0..PAYLOAD / 8).flat_map(|_| random.bits().to_le_bytes());
        let mut carrier = Carrier {
            epoll,
            epoch: config.epoch,
            at: Time::ZERO,
            sides,
            paths: config.paths,
            slots: Slots::default(),
            workers: Vec::new(),
            listeners: Vec::new(),
            waiting: HashMap::new(),
            queue: EventQueue::new(),
            inbox: VecDeque::new(),
            ready: VecDeque::new(),
            actions: Vec::new(),
            sink: vec![0; SINK],
            payload: payload.collect(),
            descriptors,
            counts: Counts::default(),
            failures: BTreeMap::new(),
            refusals: BTreeMap::new(),
            lateness: Lateness::default(),
            warnings: warning.into_iter().collect(),
            next_sweep: Time::ZERO,
            started: false,
        };
        carrier.try_addresses()?;
        Ok(carrier)
    }

    /// Adds a workload whose connections use the settings of `tcp`, as far as sockets can be configured. It starts
    /// when the carrier next runs. Returns its number.
    ///
    /// # Errors
    /// If no socket can be created.
    pub fn add(
        &mut self,
        machine: Box<dyn Workload>,
        tcp: &Arc<TcpConfig>,
    ) -> Result<usize, SocketsError> {
        let (settings, warnings) = Settings::of(tcp);
        for warning in warnings {
            self.warn(warning);
        }
        let probe = self.sides[0]
            .sockets
            .socket(AddressFamily::INET, SocketType::STREAM)
            .map_err(SocketsError::Socket)?;
        if let Some(warning) = settings.check(probe.as_fd()) {
            self.warn(warning);
        }
        let index = self.workers.len();
        self.workers.push(Worker {
            machine,
            settings,
            open: Window::default(),
            listeners: [[None; 2]; 2],
        });
        self.inbox.push_back((index as u32, Event::Start));
        Ok(index)
    }

    /// Runs until `until`, or until `stop` is set, which is noticed within 50 ms.
    ///
    /// # Errors
    /// If waiting for kernel events fails.
    pub fn run(&mut self, until: Time, stop: &AtomicBool) -> Result<StopReason, SocketsError> {
        self.epoch.get_or_insert_with(Instant::now);
        // By default the kernel wakes sleepers up to 50 us late to save energy (prctl(2), PR_SET_TIMERSLACK).
        let slack = rustix::thread::current_timer_slack();
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let ended = self.turn(until, stop);
        let _ =
            rustix::thread::set_current_timer_slack(slack.ok().and_then(std::num::NonZeroU64::new));
        ended
    }

    /// The current time; zero before the first run.
    pub fn now(&self) -> Time {
        self.epoch.map_or(Time::ZERO, |epoch| {
            let ns = Instant::now().saturating_duration_since(epoch).as_nanos();
            Time::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
        })
    }

    /// Records that workload `index` completed since the last call.
    pub fn take_records(&mut self, index: usize) -> Vec<Record> {
        self.workers[index].machine.take_records()
    }

    /// Samples that workload `index` took since the last call.
    pub fn take_samples(&mut self, index: usize) -> Vec<Sample> {
        self.workers[index].machine.take_samples()
    }

    /// Number of open connections and datagram flows.
    pub fn open_flows(&self) -> usize {
        self.slots.len()
    }

    /// Information about connection `conn` of workload `index`; `None` if it is not open.
    pub fn info(&self, index: usize, conn: Conn) -> Option<Info> {
        let slot = self.workers.get(index)?.open.get(conn)?;
        Some(info(&self.slots, slot))
    }

    /// Ends the run. Every workload turns unfinished work into records, and everything is closed. Open connections
    /// are reset.
    pub fn finish(&mut self) {
        for Worker { machine, open, .. } in &mut self.workers {
            machine.finish(&|conn| {
                let slot = open.get(conn);
                slot.map_or_else(Info::default, |slot| info(&self.slots, slot))
            });
        }
        self.listeners.clear();
        self.waiting.clear();
        for slot in self.slots.numbers() {
            self.free(slot);
        }
    }

    /// Counters, warnings and timer lateness.
    pub fn report(&self) -> Report {
        let shared = self.sides.iter().flat_map(|s| s.pools.iter().flatten());
        Report::new(
            self.counts,
            self.lateness.late(),
            &self.failures,
            &self.refusals,
            shared.map(|pool| (*pool.prefix(), pool.shared)),
            self.descriptors.limit(),
            self.warnings.clone(),
        )
    }

    fn warn(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    // Common to connections and datagram flows.

    /// Allocates a slot, and addresses for both hosts of `open`. Returns `None` if that is refused, which is counted.
    pub(super) fn begin(
        &mut self,
        kind: Kind,
        worker: u32,
        conn: Conn,
        open: &Open,
    ) -> Option<(u32, [IpAddr; 2])> {
        if self.workers[worker as usize].open.get(conn).is_some() {
            self.counts.numbers_in_use += 1;
            return None;
        }
        if !self.descriptors.take_pair() {
            self.counts.without_descriptors += 1;
            return None;
        }
        let client_side = open.client_side;
        let ways = [client_side, client_side.other()];
        let ipv6 = open.wire.ipv6 && self.sides.iter().all(|s| s.pools[1].is_some());
        self.counts.ipv6_as_ipv4 += u64::from(open.wire.ipv6 && !ipv6);
        let slot = self.slots.insert(kind, worker, conn);
        let mut addresses = [IpAddr::from([0; 4]); 2];
        let mut hosts = [0; 2];
        for (i, access) in [&open.client, &open.server].into_iter().enumerate() {
            let name = (access.key != 0).then_some((worker, access.key));
            let Some(pool) = &mut self.sides[ways[i]].pools[usize::from(ipv6)] else {
                continue;
            };
            let (host, fresh) = pool.take(name);
            (hosts[i], addresses[i]) = (host, pool.address(host));
            let plain = access.delay == Dur::ZERO
                && (access.up, access.down) == (None, None)
                && (access.loss_up, access.loss_down) == (0.0, 0.0);
            match &mut self.paths {
                Some(paths) if fresh => paths.taken(ways[i], addresses[i], access),
                None if !plain => self.counts.access_not_applied += 1,
                _ => {}
            }
        }
        let new = self.slots.at(slot);
        (new.silent, new.ipv6, new.client_side) = (open.silent, ipv6, client_side);
        new.hosts = hosts;
        self.workers[worker as usize].open.insert(conn, slot);
        Some((slot, addresses))
    }

    /// Removes the connection from the workload's open connections.
    pub(super) fn leave(&mut self, slot: u32) {
        let (worker, conn) = {
            let s = self.slots.peek(slot);
            (s.worker, s.conn)
        };
        self.workers[worker as usize].open.remove(conn);
    }

    /// Closes the sockets of a slot and releases its addresses and descriptors.
    pub(super) fn free(&mut self, slot: u32) {
        let s = self.slots.peek(slot);
        if s.kind == Kind::Free {
            return;
        }
        let (client_side, ipv6, hosts) = (s.client_side, s.ipv6, s.hosts);
        self.slots.remove(slot);
        self.descriptors.give_back_pair();
        for (side, host) in [client_side, client_side.other()].into_iter().zip(hosts) {
            let Some(pool) = &mut self.sides[side].pools[usize::from(ipv6)] else {
                continue;
            };
            if pool.give_back(host)
                && let Some(paths) = &mut self.paths
            {
                paths.released(side, pool.address(host));
            }
        }
    }

    /// Frees what is left of a connection or flow once its waiting time is over.
    fn reap(&mut self, token: u64) {
        let Some((slot, _)) = self.slots.of(token) else {
            return;
        };
        match self.slots.peek(slot).kind {
            Kind::Forgotten => self.free(slot),
            Kind::Tcp => self.give_up(slot),
            Kind::Free | Kind::Datagrams => {}
        }
    }

    /// Counts an attempt that the kernel refused.
    pub(super) fn failed(&mut self, error: Errno) {
        self.counts.failed += 1;
        *self.failures.entry(error.raw_os_error()).or_default() += 1;
    }

    /// Checks that the first address of each side can be bound.
    fn try_addresses(&mut self) -> Result<(), SocketsError> {
        for side in &mut self.sides {
            for pool in side.pools.iter().flatten() {
                try_address(&mut *side.sockets, pool.address(0)).map_err(|error| {
                    SocketsError::Address {
                        address: pool.address(0),
                        prefix: *pool.prefix(),
                        error,
                    }
                })?;
            }
        }
        Ok(())
    }
}

/// Information about the connection in a slot.
pub(super) fn info(slots: &Slots, slot: u32) -> Info {
    let slot = slots.peek(slot);
    let received = [slot.ends[0].received, slot.ends[1].received];
    if slot.kind != Kind::Tcp {
        return Info {
            received,
            ..Info::default()
        };
    }
    let [client, server] = [&slot.ends[0], &slot.ends[1]].map(|half| half.facts());
    let least = client.1.min(server.1);
    Info {
        client_retransmissions: client.0,
        server_retransmissions: server.0,
        min_rtt: (least != u32::MAX).then(|| Dur::from_micros(least.into())),
        received,
    }
}
