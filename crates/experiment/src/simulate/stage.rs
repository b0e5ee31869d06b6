//! What any backend needs of a run that has a world: building it, and reading it at the end.

use swell_base::{Dur, Tag};
use swell_path::Ledger;
use swell_workload::Record;
use swell_world::World;

use super::build;
use super::observe::{self, Acked, Waited};
use crate::backend::{Offered, RunError, RunSpec};
use crate::kinds::{Machine, Role};
use crate::observe::{Observations, Request};
use crate::packets::Recorder;

/// Bin width of the counts behind the log-scale diagrams.
const FINE: Dur = Dur::from_millis(1);

/// Class of the flows of a foreground of packets or endless transfers.
const FOREGROUND: &str = "foreground";

/// Who plays in a world, and what was noted of it while it ran.
pub struct Cast {
    background: Option<usize>,
    foreground: Option<usize>,
    recorder: Option<Recorder>,
    warm: Option<[Ledger; 2]>,
    /// What had waited when the warm-up was over, where that is asked for.
    waited: Vec<Waited>,
    /// Acknowledgements until then, likewise.
    acked: [Acked; 2],
    /// Of a background that was played elsewhere.
    records: Vec<Record>,
}

impl Cast {
    /// The world of a run at its beginning: the bottleneck with its meters, the background, and the
    /// foreground if it is a machine and not a real program.
    ///
    /// # Errors
    /// Where a background cannot be built, or the file of packets cannot be created.
    pub fn new(spec: &RunSpec) -> Result<(World, Cast), RunError> {
        let seed = spec.cell.seed;
        let mut world = World::new(&build::bottleneck(spec), seed);
        world.meter(FINE, spec.bins);
        if spec.waits || spec.synchrony {
            world.take_census();
        }
        let background = build::background(spec)?;
        let foreground = build::foreground(spec)?;
        let recorder = match &spec.packets {
            None => None,
            Some(path) => {
                let tcp = [&background, &foreground].map(|m| m.as_ref().map(|(_, tcp)| tcp));
                let recorder = Recorder::create(path, build::sources(spec, tcp), seed)
                    .map_err(|e| RunError::Failed(e.into()))?;
                world.set_tap(recorder.tap());
                Some(recorder)
            }
        };
        // In the order of `build::sources`.
        let background = background.map(|(mut machine, tcp)| {
            machine.keep_records(spec.flows);
            world.add(machine, Tag::Background, tcp)
        });
        let foreground = foreground.map(|(machine, tcp)| world.add(machine, Tag::Foreground, tcp));
        let cast = Cast {
            background,
            foreground,
            recorder,
            warm: None,
            waited: Vec::new(),
            acked: Default::default(),
            records: Vec::new(),
        };
        Ok((world, cast))
    }

    /// The warm-up is over: what the bottleneck drops from now on counts.
    pub fn warmed_up(&mut self, world: &World) {
        self.was_warm(observe::ledgers(world));
        self.waited = observe::waited(world, [self.foreground, self.background]);
        self.acked = observe::acked(world, [self.foreground, self.background]);
    }

    /// As [`Cast::warmed_up`], when somebody else has looked at the world then.
    pub fn was_warm(&mut self, ledgers: [Ledger; 2]) {
        self.warm = Some(ledgers);
    }

    /// The connections of a background that was played outside the world.
    pub fn played(&mut self, records: Vec<Record>) {
        self.records = records;
    }

    /// Whether packets are recorded and that has failed; why is told at the end.
    pub fn failed(&self) -> bool {
        self.recorder.as_ref().is_some_and(Recorder::failed)
    }

    /// Everything that the world says at the end of the run, and the doubts that the run itself
    /// raises. `at_end` are the ledgers at the last instant that counts.
    ///
    /// # Errors
    /// Where packets could not be recorded.
    pub fn observe(
        self,
        world: &mut World,
        spec: &RunSpec,
        at_end: &[Ledger; 2],
    ) -> Result<Observations, RunError> {
        if let Some(recorder) = self.recorder {
            let written = recorder.finish();
            written.map_err(|e| RunError::Failed(e.into()))?;
        }
        world.finish();
        let at_warmup = self.warm.unwrap_or_default();
        let mut observed = observe::bottleneck(world, spec, [&at_warmup, at_end], FINE);
        let who = [self.foreground, self.background];
        if spec.waits {
            observed.waits = observe::waits(&self.waited, &observe::waited(world, who));
        }
        if spec.synchrony {
            observed.synchrony = observe::synchrony(world, spec, who, self.acked);
        }
        let own = self.foreground.map(|index| world.take_records(index));
        let own = own.unwrap_or_default();
        observed.requests = observe::requests(&own, spec.duration.as_secs_f64());
        if spec.flows {
            let mut records = self.records;
            if let Some(index) = self.background {
                records.extend(world.take_records(index));
            }
            let class = |i| spec.background.class(i);
            observed.flows = observe::flows(records, class);
            let foreground = |_| FOREGROUND.to_owned();
            observed.flows.extend(observe::flows(own, foreground));
        }
        observed.warnings.extend(build::doubts(spec));
        Ok(observed)
    }
}

/// The machine of a run's background, with the TCP it asks for; `None` where there is no background.
///
/// # Errors
/// Where it cannot be built.
pub fn background(spec: &RunSpec) -> Result<Option<Machine>, RunError> {
    build::background(spec)
}

/// What a run's background offers, where that is known before it runs.
///
/// # Errors
/// Where it cannot be built.
pub fn offered(spec: &RunSpec) -> Result<Option<Offered>, RunError> {
    spec.background.offered(&spec.setting(Role::Background))
}

/// Rows of the table `requests`, in order of their starts, of requests that were watched until `end`, seconds.
pub fn requests(records: &[Record], end: f64) -> Vec<Request> {
    observe::requests(records, end)
}

/// What the bottleneck has done so far, up and down.
pub fn ledgers(world: &World) -> [Ledger; 2] {
    observe::ledgers(world)
}
