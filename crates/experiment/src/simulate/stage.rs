//! Builds the world of a run and reads the results from it at the end. Shared by all backends with a world.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use swell_base::{Direction, Dur, Tag, Time};
use swell_path::{Census, Meter};
use swell_workload::{Record, Sample};
use swell_world::{Tap, World};

use super::build;
use super::coherence;
use super::observe::Added;
pub use super::observe::Ledgers;
use super::observe::{self, Acked, Counted};
use super::round_trips::Ends;
use super::waterfall::Watching;
pub use crate::backend::offered;
use crate::backend::{RunError, RunSpec};
use crate::exporter::Exporting;
use crate::file::queues;
use crate::kinds::{Machine, Playing, Role};
use crate::observe::{MeasureSample, Observations, Request};
pub use crate::packets::beside;
use crate::packets::{Recorder, SharedHeaders, Source};

/// Bin width of the counts behind the log-scale diagrams.
const FINE: Dur = Dur::from_millis(1);

/// Class of the flows of a foreground of packets or endless transfers.
const FOREGROUND: &str = "foreground";

/// The parts of a run in a world, with their recorders and the counts at the end of the warm-up.
pub struct RunParts {
    parts: Vec<Added>,
    /// One for each link whose packets are kept.
    recorders: Vec<Recorder>,
    /// One for each link that has a flow exporter.
    exporters: Vec<Exporting>,
    /// Follows the foreground's packets, if the run keeps the waterfall.
    watching: Option<Watching>,
    /// Observes the packets at the ends of the foreground's connections, if the run keeps round trips or gaps.
    ends: Option<Ends>,
    /// Ledgers of the links at the end of the warm-up.
    warm: Option<Ledgers>,
    /// Counts of parts at the end of the warm-up, if a census is taken.
    counted: Vec<Counted>,
    /// Counts of ACKs at the end of the warm-up, if a census is taken.
    acked: Vec<Acked>,
    /// Bytes of use to the foreground that had arrived by the end of the warm-up, up and down.
    delivered: Option<[u64; 2]>,
    /// Connections of a background that ran outside the world.
    records: Vec<Record>,
}

impl RunParts {
    /// Builds the world of a run: its links with meters, the background, and the foreground unless it is a real
    /// program.
    ///
    /// # Errors
    /// If a part cannot be built, or the packet file cannot be created.
    pub fn new(spec: &RunSpec) -> Result<(World, RunParts), RunError> {
        RunParts::watched(spec, None)
    }

    /// The same with a tap on a link. Taps must be set before any connection is added.
    ///
    /// # Errors
    /// As [`RunParts::new`].
    pub fn watched(
        spec: &RunSpec,
        tap: Option<(usize, Box<dyn Tap>)>,
    ) -> Result<(World, RunParts), RunError> {
        let seed = spec.cell.seed;
        let mut world = World::with_links(&build::links(spec), seed);
        if let Some((link, tap)) = tap {
            world.set_tap_on(link, tap);
        }
        if spec.is_mixed() {
            world.set_census(&Census::over_time(spec.bins, Time::ZERO + spec.duration));
        } else if spec.keep.waits || spec.keep.synchrony {
            world.take_census();
        }
        let mut machines = Vec::new();
        for role in [Role::Background, Role::Foreground] {
            for (setting, part) in spec.parts(role) {
                if let Some(machine) = part.machine(&setting)? {
                    machines.push((role, part, machine));
                }
            }
        }
        // Workloads are numbered in this order.
        let studied = spec.foreground.as_ref();
        let is_own = |part: &Playing| studied.is_some_and(|one| std::ptr::eq(part, one));
        let foreground = machines.iter().position(|m| is_own(m.1));
        let meter = Meter::new(FINE, spec.bins).until(Time::ZERO + spec.duration);
        world.set_meters(&meter.beside(foreground.map(|index| index as u32)));
        let sources = |port: Option<u16>| {
            let source = |(role, part, (_, tcp)): &(Role, &Playing, Machine)| {
                let own = build::source(*role, part, tcp);
                Source {
                    port: port.unwrap_or(own.port),
                    ..own
                }
            };
            machines.iter().map(source).collect()
        };
        // Learning from flow records identifies servers by a well-known port.
        let exported = SharedHeaders::new(sources(Some(80)), seed);
        let mut exporters = Vec::new();
        for (link, duplex) in spec.links.iter().enumerate() {
            if let Some(settings) = &spec.keep.records {
                let headers = exported.clone();
                let exporting = Exporting::new(settings, &duplex.name, headers, seed);
                world.set_tap_on(link, Box::new(exporting.clone()));
                exporters.push(exporting);
            }
        }
        let crossed: BTreeSet<usize> = (spec.foreground.iter())
            .flat_map(|part| part.path.iter().map(|hop| hop.link))
            .collect();
        let watching = spec.keep.waterfall.then(|| Watching::new(crossed.len()));
        if let (Some(watching), Some(own)) = (&watching, foreground) {
            for link in 0..spec.links.len() {
                world.set_tap_on(link, watching.tap(link, own as u32));
            }
        }
        let ends = (spec.keep.rtts || spec.keep.gaps).then(Ends::default);
        if let (Some(ends), Some(own)) = (&ends, foreground) {
            world.set_tap_on_hosts(own, Box::new(ends.clone()));
        }
        let recorded = SharedHeaders::new(sources(None), seed);
        let mut recorders = Vec::new();
        for (link, path) in packets_of(spec).into_iter().enumerate() {
            let recorder = Recorder::create(&path, &spec.links[link].name, recorded.clone())
                .map_err(|e| RunError::Failed(e.into()))?;
            world.set_tap_on(link, recorder.tap());
            recorders.push(recorder);
        }
        let mut parts = Vec::with_capacity(machines.len());
        for (role, part, (mut machine, tcp)) in machines {
            let tag = match role {
                Role::Background => {
                    machine.keep_records(spec.keep.flows);
                    Tag::Background
                }
                Role::Foreground => Tag::Foreground,
            };
            let path = world.add_path(&part.path);
            let path = path.ok_or_else(|| RunError::Failed("a path that is none".into()))?;
            let own = is_own(part);
            let index = world.add_on(path, machine, tag, tcp);
            if own && spec.delays {
                world.count_delays(index, Time::ZERO + spec.warmup);
            }
            parts.push(Added {
                role,
                part: part.clone(),
                index,
                own,
            });
        }
        let run_parts = RunParts {
            parts,
            recorders,
            exporters,
            watching,
            ends,
            warm: None,
            counted: Vec::new(),
            acked: Vec::new(),
            delivered: None,
            records: Vec::new(),
        };
        Ok((world, run_parts))
    }

    /// Records all counts at the end of the warm-up. Results are relative to them.
    pub fn warmed_up(&mut self, world: &World) {
        self.was_warm(observe::ledgers(world));
        self.counted = observe::counted(world, &self.parts);
        self.acked = observe::acked(world, &self.parts);
        self.delivered = self.delivered(world);
    }

    /// Bytes of use to the foreground that have arrived so far; `None` where its requests or datagrams tell.
    fn delivered(&self, world: &World) -> Option<[u64; 2]> {
        let own = self.parts.iter().find(|part| part.own)?;
        world.delivered(own.index)
    }

    /// Like [`RunParts::warmed_up`], with link ledgers that the caller read at that time.
    pub fn was_warm(&mut self, ledgers: Ledgers) {
        self.warm = Some(ledgers);
    }

    /// Adds the connections of a background that ran outside the world.
    pub fn played(&mut self, records: Vec<Record>) {
        self.records = records;
    }

    /// Whether the recording of packets has failed. [`RunParts::observe`] returns the reason.
    pub fn failed(&self) -> bool {
        self.recorders.iter().any(Recorder::failed)
    }

    /// All observations at the end of the run, with doubts about the run itself. `at_end` are the ledgers at the last
    /// instant that counts.
    ///
    /// # Errors
    /// If packets could not be recorded.
    pub fn observe(
        self,
        world: &mut World,
        spec: &RunSpec,
        at_end: &Ledgers,
    ) -> Result<Observations, RunError> {
        let delivered = self.delivered(world);
        for recorder in self.recorders {
            let written = recorder.finish();
            written.map_err(|e| RunError::Failed(e.into()))?;
        }
        world.finish();
        let at_warmup = self.warm.unwrap_or_default();
        let mut observed = observe::links(world, spec, [&at_warmup, at_end], FINE);
        observed.coherence = coherence::neighbours(world, spec, FINE);
        let counted = observe::counted(world, &self.parts);
        if spec.keep.waits {
            observed.waits = observe::waits(spec, &self.counted, &counted);
        }
        if spec.is_mixed() {
            observed.parts = observe::totals_of_parts(&self.counted, &counted, spec);
            observed.part_bins = observe::bins_of_parts(world, spec, &self.parts);
        }
        if spec.keep.synchrony {
            observed.synchrony = observe::synchrony(world, spec, &self.parts, &self.acked);
        }
        let foreground = self.parts.iter().find(|p| p.own);
        let own = foreground.map(|p| world.take_records(p.index));
        let own = own.unwrap_or_default();
        let samples = foreground.map(|p| world.take_samples(p.index));
        observed.measures = measures(samples.unwrap_or_default());
        if let Some(now) = delivered {
            let rows = observe::goodput(spec, self.delivered.unwrap_or_default(), now);
            observed.measures.extend(rows);
        }
        if let Some(part) = foreground {
            observed.delays = observe::delays(world, part.index);
            let path = observe::crossed(world, spec, &queues(&part.part.path, Direction::Down));
            part.part.observed(&path, &mut observed);
            if let Some(watching) = self.watching {
                let (access, hello) = (part.part.delay(), part.part.hello());
                observed.waterfall = watching.shares(spec, &part.part.path, access, hello, &own);
            }
            if let Some(ends) = self.ends {
                let (rtts, gaps) = ends.tables();
                observed.rtts = if spec.keep.rtts { rtts } else { Vec::new() };
                observed.gaps = if spec.keep.gaps { gaps } else { Vec::new() };
            }
        }
        observed.requests = observe::requests(&own, spec.duration.as_secs_f64());
        if spec.keep.flows {
            // A background that ran outside the world has a single part.
            let class = |i| {
                spec.background
                    .first()
                    .map_or_else(String::new, |b| b.class(i))
            };
            observed.flows = observe::flows(self.records, class);
            for added in self.parts.iter().filter(|p| p.role == Role::Background) {
                let records = world.take_records(added.index);
                let rows = observe::flows(records, |i| added.part.class(i));
                observed.flows.extend(rows);
            }
            let own_class = |_| FOREGROUND.to_owned();
            observed.flows.extend(observe::flows(own, own_class));
        }
        let exported = self.exporters.into_iter().map(Exporting::finish);
        observed.exported = exported.map(Arc::new).collect();
        observed.warnings.extend(build::doubts(spec));
        Ok(observed)
    }
}

/// Completes the observations of a foreground that ran outside the world with facts that only the world knows.
pub fn completed(world: &World, spec: &RunSpec, observed: &mut Observations) {
    if let Some(part) = &spec.foreground {
        let path = observe::crossed(world, spec, &queues(&part.path, Direction::Down));
        part.observed(&path, observed);
    }
}

/// The workload of a run's background, with its TCP configuration; `None` if there is no background.
///
/// # Errors
/// If it cannot be built, or has several parts.
pub fn background(spec: &RunSpec) -> Result<Option<Machine>, RunError> {
    match &spec.parts(Role::Background)[..] {
        [] => Ok(None),
        [(setting, part)] => part.machine(setting),
        _ => Err(RunError::Failed(
            "a mix of backgrounds is simulated only".into(),
        )),
    }
}

/// Rows of the table `requests`, sorted by start. Requests were observed until `end`, seconds.
pub fn requests(records: &[Record], end: f64) -> Vec<Request> {
    observe::requests(records, end)
}

/// Rows of the table `measures`.
pub fn measures(samples: Vec<Sample>) -> Vec<MeasureSample> {
    let row = |s: Sample| MeasureSample {
        measure: s.measure.to_owned(),
        value: s.value,
        at: s.at.as_secs_f64(),
    };
    samples.into_iter().map(row).collect()
}

/// The packet files of a run: the file of the run or, with several links, one for each link. Their names have the name
/// of the link before the extension.
pub fn packets_of(spec: &RunSpec) -> Vec<PathBuf> {
    let Some(path) = &spec.packets else {
        return Vec::new();
    };
    let names = spec.links.iter().map(|link| &link.name);
    names
        .map(|name| match spec.links.len() {
            1 => path.clone(),
            _ => beside(path, name),
        })
        .collect()
}

/// The current ledgers of all links.
pub fn ledgers(world: &World) -> Ledgers {
    observe::ledgers(world)
}
