//! From a file to runs, each fully specified.

mod deliveries;
mod flows;
mod rates;
mod traces;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use swell_base::{Bytes, Dur, QueueLimit, Rate};
use swell_path::{Deliveries, Fifo};
use swell_traffic::flowlevel::{FlowModel, Playback};
use swell_traffic::{Dependency, Knobs, Model};

use self::rates::{matched, times, too_small};
use crate::backend::{BackgroundSpec, ForegroundSpec, PacketsSpec, Process, RunSpec, Trace};
use crate::bundled;
use crate::file::{
    self, Background, File, Foreground, Independence, Learnt, Link, Problem, Problems, RateSpec,
};
use crate::hash::Hash;
use crate::observe::Cell;
use crate::store::{Measured, ModelFacts};

/// An experiment, resolved: its models read, its runs listed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The experiment. Model files are named relative to the run directory.
    pub file: File,
    /// Its text, every default written out.
    pub toml: String,
    /// What the user called the file.
    pub source: String,
    /// The runs: foregrounds, then backgrounds, then replications, in the order of the file.
    pub cells: Vec<Cell>,
    /// The models of learnt backgrounds, by background.
    pub models: BTreeMap<String, LoadedModel>,
    /// The flow-level models of backgrounds of sessions, by background.
    pub flow_models: BTreeMap<String, LoadedFlowModel>,
    /// The traces of replayed backgrounds, by background.
    pub traces: BTreeMap<String, LoadedTrace>,
    /// The packet-delivery traces of the network, by the path in the resolved file.
    pub deliveries: BTreeMap<String, Arc<Deliveries>>,
}

/// A model of a learnt background.
#[derive(Clone, Debug)]
pub struct LoadedModel {
    /// The model.
    pub model: Arc<Model>,
    /// What the manifest says of it.
    pub facts: ModelFacts,
    /// Its file, to be put into the run directory under this name; `None` for a bundled one.
    pub copy: Option<(String, Vec<u8>)>,
}

/// A flow-level model of a background of sessions.
#[derive(Clone, Debug)]
pub struct LoadedFlowModel {
    /// The model.
    pub model: Arc<FlowModel>,
    /// What the manifest says of it.
    pub facts: ModelFacts,
    /// Its file, to be put into the run directory under this name.
    pub copy: (String, Vec<u8>),
}

/// A trace of a replayed background.
#[derive(Clone, Debug)]
pub struct LoadedTrace {
    /// Its packets.
    pub trace: Arc<Trace>,
    /// What the manifest says of it. The capture itself is not copied: it may be large, and hold what
    /// is nobody else's business.
    pub facts: ModelFacts,
}

impl Plan {
    /// Reads and resolves an experiment. `source` is what messages call it; model files and captures
    /// are looked for relative to `base`.
    ///
    /// # Errors
    /// Every problem found in the file, or else with its models and captures.
    pub fn resolve(text: &str, source: &str, base: &Path) -> Result<Plan, Problems> {
        Plan::resolve_with(text, source, base, &Traces::default())
    }

    /// As [`resolve`](Plan::resolve); captures are read only where `known` has not read them yet.
    ///
    /// # Errors
    /// As [`resolve`](Plan::resolve).
    pub fn resolve_with(
        text: &str,
        source: &str,
        base: &Path,
        known: &Traces,
    ) -> Result<Plan, Problems> {
        let mut file = file::read(text, source)?;
        let mut models = BTreeMap::new();
        let mut flow_models = BTreeMap::new();
        let mut traces = BTreeMap::new();
        let mut problems: Vec<Problem> = Vec::new();
        for (i, background) in file.background.iter_mut().enumerate() {
            let mut complain = |key: &str, (message, hint): Complaint| {
                let key = format!("background[{i}].{key}");
                problems.push(file::problem(text, &key, message, hint));
            };
            match background {
                Background::Learnt(learnt) => {
                    match known.model(base.join(&learnt.model), || load(&learnt.model, base)) {
                        Ok(mut loaded) => {
                            if let Some(complaint) = too_small(learnt, &loaded.model, file.run.seed)
                            {
                                complain("rate", complaint);
                            }
                            if let Some((name, _)) = &mut loaded.copy {
                                *name = copy_of(i, name);
                                learnt.model.clone_from(name);
                            }
                            models.insert(learnt.name.clone(), loaded);
                        }
                        Err(complaint) => complain("model", complaint),
                    }
                }
                Background::Sessions(sessions) => match flows::load(sessions, base) {
                    Ok(mut loaded) => {
                        loaded.copy.0 = copy_of(i, &loaded.copy.0);
                        sessions.model.clone_from(&loaded.copy.0);
                        flow_models.insert(sessions.name.clone(), loaded);
                    }
                    Err((key, complaint)) => complain(key, complaint),
                },
                Background::Replay(replay) => match traces::load(replay, base, known) {
                    Ok(loaded) => {
                        // Relative to the run directory it would be another file.
                        replay.trace.clone_from(&loaded.facts.source);
                        traces.insert(replay.name.clone(), loaded);
                    }
                    Err((key, complaint)) => complain(key, complaint),
                },
                _ => {}
            }
        }
        let deliveries = deliveries::resolve(&mut file.network, base, &mut |key, complaint| {
            problems.push(file::problem(text, &key, complaint.0, complaint.1));
        });
        if !problems.is_empty() {
            return Err(Problems {
                file: source.into(),
                problems,
            });
        }
        let cells = cells(&file);
        Ok(Plan {
            toml: file.to_toml(),
            file,
            source: source.into(),
            cells,
            models,
            flow_models,
            traces,
            deliveries,
        })
    }

    /// What tells this experiment from others: equal hashes, equal tables.
    pub fn hash(&self, backend: &str) -> String {
        let mut hash = Hash::new()
            .part(crate::VERSION.as_bytes())
            .part(backend.as_bytes())
            .part(self.toml.as_bytes());
        for (background, facts) in self.facts() {
            hash = hash.part(background.as_bytes()).part(facts.hash.as_bytes());
        }
        hash.hex()
    }

    /// What the manifest says of models and traces, by background.
    pub fn facts(&self) -> impl Iterator<Item = (&str, &ModelFacts)> {
        let models = self.models.iter().map(|(b, m)| (b.as_str(), &m.facts));
        let traces = self.traces.iter().map(|(b, t)| (b.as_str(), &t.facts));
        let flows = self.flow_models.iter();
        let flows = flows.map(|(b, m)| (b.as_str(), &m.facts));
        models.chain(flows).chain(traces)
    }

    /// The backgrounds that have to be measured alone first: those that another one matches, those that are
    /// scaled to a rate, and bursts of packets, which may lose some.
    pub fn to_measure(&self) -> Vec<&Background> {
        let matched: Vec<&str> = self
            .file
            .background
            .iter()
            .filter_map(|b| b.matches())
            .collect();
        self.file
            .background
            .iter()
            .filter(|b| {
                let bursts = matches!(b, Background::Replay(_) | Background::OnOff(_));
                matched.contains(&b.name()) || b.is_scaled() || (bursts && b.is_open_loop())
            })
            .collect()
    }

    /// A run, everything said. `measured` holds what calibration found; a background that
    /// matches one not measured is silent.
    pub fn spec(&self, cell: &Cell, measured: &BTreeMap<String, Measured>) -> Option<RunSpec> {
        let background = self.background(&cell.background)?;
        let foreground = self
            .file
            .foreground
            .iter()
            .find(|f| f.name() == cell.foreground)?;
        let found = measured.get(background.name());
        let pace = found.and_then(|m| m.sessions.or(m.speed).or(m.factor));
        let replication = cell.replication as usize;
        Some(RunSpec {
            cell: cell.clone(),
            foreground: match foreground {
                Foreground::None(_) => None,
                Foreground::Greedy(greedy) => Some(ForegroundSpec::Greedy(greedy.clone())),
                Foreground::Web(web) => Some(ForegroundSpec::Web {
                    web: web.clone(),
                    delay: self.access_delay(foreground),
                }),
                Foreground::Program(program) => Some(ForegroundSpec::Program {
                    program: program.clone(),
                    delay: self.access_delay(foreground),
                }),
                Foreground::Poisson(p) => {
                    let rates = matched(p, measured, replication);
                    Some(ForegroundSpec::Packets(packets(Process::Poisson, p, rates)))
                }
                Foreground::Cbr(p) => {
                    let rates = matched(p, measured, replication);
                    Some(ForegroundSpec::Packets(packets(Process::Cbr, p, rates)))
                }
            },
            background: self.background_spec(background, pace, measured, replication),
            ..self.bare(cell.clone())
        })
    }

    /// A run of a background alone, to measure it; `pace` overrides the file's sessions, the speed of a
    /// replay, or multiplies the rate of packets. `measured` has what it may match.
    pub fn alone(
        &self,
        background: &Background,
        replication: u32,
        pace: Option<f64>,
        measured: &BTreeMap<String, Measured>,
    ) -> RunSpec {
        let cell = Cell {
            foreground: String::new(),
            background: background.name().into(),
            replication,
            seed: self.seed(replication),
        };
        RunSpec {
            background: self.background_spec(background, pace, measured, replication as usize),
            flows: false,
            waits: false,
            synchrony: false,
            ..self.bare(cell)
        }
    }

    fn background(&self, name: &str) -> Option<&Background> {
        self.file.background.iter().find(|b| b.name() == name)
    }

    fn seed(&self, replication: u32) -> u64 {
        self.file.run.seed.wrapping_add(u64::from(replication))
    }

    fn bare(&self, cell: Cell) -> RunSpec {
        let phase = deliveries::phase(&self.deliveries, cell.seed);
        let links = self.links().map(|mut link| {
            if let Some(spec) = &mut link.deliveries {
                deliveries::begin(spec, &self.deliveries, phase);
            }
            link
        });
        let all = &self.file.network.change;
        let changes = [0, 1]
            .map(|d| deliveries::changes(all, d, &links[d], self.rtt(), &self.deliveries, phase));
        RunSpec {
            cell,
            links,
            changes,
            deliveries: self.deliveries.clone(),
            foreground: None,
            background: BackgroundSpec::None,
            warmup: self.file.run.warmup,
            duration: self.file.run.duration,
            bins: self.file.run.bins,
            background_stack: self.file.run.background_stack,
            flows: self.file.run.keep.flows,
            waits: self.file.run.keep.waits,
            synchrony: self.file.run.keep.synchrony,
            packets: None,
            output: None,
        }
    }

    /// One-way access delay on each side of the bottleneck.
    fn access_delay(&self, foreground: &Foreground) -> Dur {
        let own: Dur = self.file.network.links().iter().map(|l| l.delay).sum();
        match (foreground.delay(), self.file.network.rtt) {
            (Some(delay), _) => delay,
            // A round trip crosses both access paths twice.
            (None, Some(rtt)) => rtt.saturating_sub(own) / 4,
            (None, None) => file::ACCESS_DELAY,
        }
    }

    /// The longest round-trip propagation delay of a foreground, or the network's `rtt`.
    pub fn rtt(&self) -> Dur {
        let own: Dur = self.file.network.links().iter().map(|l| l.delay).sum();
        self.file.network.rtt.unwrap_or_else(|| {
            self.file
                .foreground
                .iter()
                .filter(|f| !matches!(f, Foreground::None(_)))
                .map(|f| own + self.access_delay(f) * 4)
                .max()
                .unwrap_or(own)
        })
    }

    /// The bottleneck, with queues in packets, bytes or time.
    pub fn links(&self) -> [Link; 2] {
        let rtt = self.rtt();
        let chosen = self.file.network.queues_given();
        let mut directions = chosen.into_iter();
        self.file.network.links().map(|mut link| {
            let rate = link.rate;
            let given = directions.next().unwrap_or(true);
            let limits = std::iter::once(&mut link.queue).chain(link.qdisc.limits_mut());
            for limit in limits {
                if let QueueLimit::Bdp(k) = *limit {
                    *limit = Fifo::bdp(k, rate, rtt);
                }
            }
            // A queue that nobody chose does not decide a slow or short link by holding nothing.
            if let (false, QueueLimit::Bytes(bytes)) = (given, &mut link.queue) {
                *bytes = Bytes(bytes.0.max(file::LEAST_QUEUE));
            }
            link
        })
    }

    fn background_spec(
        &self,
        background: &Background,
        pace: Option<f64>,
        measured: &BTreeMap<String, Measured>,
        replication: usize,
    ) -> BackgroundSpec {
        let (process, b) = match background {
            Background::None(_) => return BackgroundSpec::None,
            Background::Learnt(b) => {
                let Some(loaded) = self.models.get(&b.name) else {
                    return BackgroundSpec::None;
                };
                return BackgroundSpec::Learnt {
                    model: Arc::clone(&loaded.model),
                    knobs: knobs(b, pace),
                    tcp: b.tcp.clone(),
                };
            }
            Background::Sessions(b) => {
                let Some(loaded) = self.flow_models.get(&b.name) else {
                    return BackgroundSpec::None;
                };
                return BackgroundSpec::Sessions {
                    model: Arc::clone(&loaded.model),
                    playback: Playback {
                        load: pace.or(b.sessions).unwrap_or(1.0),
                        ..flows::playback(b)
                    },
                    delay: b.delay,
                    tcp: b.tcp.clone(),
                };
            }
            Background::Replay(b) => {
                let Some(loaded) = self.traces.get(&b.name) else {
                    return BackgroundSpec::None;
                };
                return BackgroundSpec::Replay {
                    replay: b.clone(),
                    trace: Arc::clone(&loaded.trace),
                    stretch: pace.map_or(b.stretch.unwrap_or(1.0), |speed| 1.0 / speed),
                };
            }
            Background::Greedy(b) => return BackgroundSpec::Greedy(b.clone()),
            Background::OnOff(b) => {
                let rate = match &b.rate {
                    RateSpec::Fixed(rate) => *rate,
                    RateSpec::Match(name) => {
                        let bps = measured.get(name).map_or(0.0, |m| m.down_bps);
                        Rate::from_bps_f64(bps)
                    }
                };
                return BackgroundSpec::OnOff(file::OnOff {
                    rate: RateSpec::Fixed(times(rate, pace)),
                    rate_up: times(b.rate_up, pace),
                    ..b.clone()
                });
            }
            Background::Poisson(b) => (Process::Poisson, b),
            Background::Cbr(b) => (Process::Cbr, b),
        };
        let rates = matched(b, measured, replication).map(|rate| times(rate, pace));
        BackgroundSpec::Parametric(packets(process, b, rates))
    }
}

fn packets(process: Process, b: &file::Parametric, rates: [Rate; 2]) -> PacketsSpec {
    PacketsSpec {
        process,
        transport: b.transport,
        sources: b.sources,
        packet: b.packet,
        rates,
        independent: b.independent,
        delays: [b.delay, b.delay_right.unwrap_or(b.delay)],
        access: b.access,
        tcp: b.tcp.clone(),
    }
}

fn knobs(learnt: &Learnt, sessions: Option<f64>) -> Knobs {
    Knobs {
        sessions: sessions.or(learnt.sessions).unwrap_or(1.0),
        response: learnt.response,
        request: learnt.request,
        think: learnt.think,
        rtt: learnt.rtt,
        access: learnt.access,
        phase: learnt.phase,
        independent: learnt.independent.iter().map(|&i| dependency(i)).collect(),
    }
}

fn dependency(independence: Independence) -> Dependency {
    match independence {
        Independence::ResponseOnRequest => Dependency::ResponseOnRequest,
        Independence::SizeOnClass => Dependency::SizeOnClass,
        Independence::ThinkOnSize => Dependency::ThinkOnSize,
        Independence::PathOnUser => Dependency::PathOnUser,
        Independence::WithinSession => Dependency::WithinSession,
        Independence::CapacityOnRtt => Dependency::CapacityOnRtt,
    }
}

fn cells(file: &File) -> Vec<Cell> {
    let mut cells = Vec::new();
    for foreground in &file.foreground {
        for background in &file.background {
            for replication in 0..file.run.replications {
                cells.push(Cell {
                    foreground: foreground.name().into(),
                    background: background.name().into(),
                    replication,
                    seed: file.run.seed.wrapping_add(u64::from(replication)),
                });
            }
        }
    }
    cells
}

pub(crate) use deliveries::counting_rate;
pub use traces::{Capture, Traces};

/// What is wrong with a model or a capture, and what helps.
type Complaint = (String, Option<String>);

/// Where the run directory has the model of background number `i`. A run directory's own file, resolved
/// there, names the same place.
fn copy_of(i: usize, name: &str) -> String {
    let prefix = format!("{i}-");
    let name = name.strip_prefix(&prefix).unwrap_or(name);
    format!("models/{prefix}{name}")
}

/// A model by its bundled name or by its path.
fn load(name: &str, base: &Path) -> Result<LoadedModel, Complaint> {
    let path = base.join(name);
    let (bytes, source, copy) = match bundled::model(name) {
        Some(bytes) => (bytes.to_vec(), "bundled".to_owned(), None),
        None if path.is_file() => {
            let bytes =
                std::fs::read(&path).map_err(|e| (format!("{}: {e}", path.display()), None))?;
            let file_name = path.file_name().map_or_else(PathBuf::new, PathBuf::from);
            let copy = (file_name.display().to_string(), bytes.clone());
            (bytes, path.display().to_string(), Some(copy))
        }
        None => {
            let known: Vec<&str> = bundled::models().collect();
            let hint = file::suggest(name, &known, "bundled models");
            let message = format!("no bundled model and no file is called `{name}`");
            return Err((message, Some(hint)));
        }
    };
    let model = Model::from_slice(&bytes).map_err(|e| (format!("model `{name}`: {e}"), None))?;
    let facts = ModelFacts {
        name: model.name.clone(),
        source,
        hash: Hash::new().part(&bytes).hex(),
        note: model.provenance.note.clone(),
        warnings: model.warnings.clone(),
    };
    Ok(LoadedModel {
        model: Arc::new(model),
        facts,
        copy,
    })
}
