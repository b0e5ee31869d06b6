//! Does background traffic matter to my application?
//!
//! The functions of the command `swell` as a library. They take plain options, return typed results, print nothing, and
//! report progress to a callback.
//!
//! | module | what it does |
//! |---|---|
//! | [`learn`] | packets or flow records in, a traffic model out |
//! | [`model`] | finds bundled models and model files, and summarises them |
//! | [`fidelity`] | generates traffic from a model and compares it with the model's own trace |
//! | [`run`] | runs an experiment, simulated or emulated, into a run directory |
//! | [`under`] | runs any program behind an emulated link with background traffic on it |
//! | [`study`] | runs a study: experiments over combinations, compared with a paper's numbers |
//! | [`generate`] | generates traffic of a flow-level model between hosts that run agents |
//! | [`show`] | opens a run directory, a model or a trace |
//!
//! # Examples
//!
//! Generate traffic from a bundled model with two seeds, and learn the result:
//!
//! ```
//! use std::path::Path;
//!
//! use groundswell::{fidelity, model};
//!
//! let model = model::packet_model(Path::new("smart-home"))?;
//! let fidelity = fidelity::fidelity(&model, &fidelity::Playback::default(), 2, || {})?;
//! let volume = &fidelity.rows[0];
//! assert!(volume.trace > 0.0 && volume.regenerated > 0.0);
//! # Ok::<(), groundswell::Error>(())
//! ```
//!
//! Learn a trace and write its model:
//!
//! ```no_run
//! use groundswell::{files, learn};
//!
//! let traces = ["monday.pcap".into(), "tuesday.pcap".into()];
//! let learnt = learn::learn(&traces, &learn::Options::default(), |_bytes| {})?;
//! let file = learnt.model.to_bytes(false).map_err(groundswell::Error::failed)?;
//! files::write("link.json".as_ref(), &file)?;
//! # Ok::<(), groundswell::Error>(())
//! ```
//!
//! Run an experiment with three replications instead of those of its file. Runs that exist already are not repeated:
//!
//! ```no_run
//! use groundswell::run::{Experiment, Options, Outcome, Source};
//!
//! let source = Source::open("mine.toml".as_ref())?;
//! let options = Options {
//!     set: vec!["run.replications=3".into()],
//!     ..Options::default()
//! };
//! let experiment = Experiment::new(&source, options, None)?;
//! if let Outcome::Complete(_, verdict) = experiment.run(&|_event| {}, &|| false)? {
//!     for foreground in &verdict.foregrounds {
//!         println!("{}: {:?}", foreground.foreground, foreground.matters);
//!     }
//! }
//! # Ok::<(), groundswell::Error>(())
//! ```
//!
//! Open a path, whatever it names:
//!
//! ```
//! use groundswell::show::{self, Shown};
//!
//! let shown = show::open("smart-home".as_ref(), &[], |_bytes| {})?;
//! assert!(matches!(shown, Shown::Model(_)));
//! # Ok::<(), groundswell::Error>(())
//! ```
//!
//! Run a bundled study and count its verdicts:
//!
//! ```no_run
//! use groundswell::study::{self, Options, Outcome, Overrides};
//!
//! let overrides = Overrides { quick: true, ..Overrides::default() };
//! let study = study::carried(study::bundled("harpoon")?, &overrides)?;
//! let options = Options { file: "runs.csv".into(), jobs: 4, fresh: false, shard: None };
//! if let Outcome::Complete(numbers) = study::run(&study, None, &options, &|_progress| {}, &|| false)? {
//!     println!("{:?}", study.study(&numbers).tally());
//! }
//! # Ok::<(), groundswell::Error>(())
//! ```
//!
//! Generate traffic of a model for a minute between two hosts that run `swell agent`:
//!
//! ```no_run
//! use std::sync::mpsc;
//!
//! use groundswell::base::Dur;
//! use groundswell::generate::{self, Address, ModelPart, Options, Order, Traffic, Trust};
//!
//! let part = ModelPart {
//!     model: String::new(),
//!     seed: 1,
//!     load: 1.0,
//!     compression: 1.0,
//!     first: 0,
//!     cycle: true,
//! };
//! let traffic = Traffic::of_model("flows.json".as_ref(), part)?;
//! let options = Options {
//!     dir: generate::directory(None, false)?,
//!     fresh: false,
//!     name: traffic.name,
//!     length: traffic.length,
//!     duration: Some(Dur::from_secs(60)),
//!     order: Order {
//!         clients: vec![Address::from("10.0.0.1:8471")],
//!         servers: vec![Address::from("10.0.0.2:8471")],
//!         token: "0123456789abcdef0123456789abcdef".into(),
//!         trust: Trust::Authorities("lab.pem".into()),
//!         rendezvous: None,
//!         traffic: traffic.part,
//!         lease: Dur::from_secs(5),
//!         threads: 1,
//!         flows: true,
//!         keep: false,
//!         dscp: Vec::new(),
//!         congestion: Vec::new(),
//!     },
//! };
//! let (_send, loads) = mpsc::channel();
//! let played = generate::generate(&options, &loads, &|_event| {}, &|| false)?;
//! println!("{} flows, lost agents: {:?}", played.flows, played.agents.lost);
//! # Ok::<(), groundswell::Error>(())
//! ```
//!
//! # Emulated runs
//!
//! Emulated runs need emulated hosts on this machine. A program that uses them first calls [`host::helper_main`] in its
//! `main`, and calls [`host::Rights::obtain`] before it starts a thread:
//!
//! ```no_run
//! use groundswell::emulate::backend::Settings;
//! use groundswell::experiment::file::LinkKeys;
//! use groundswell::host::{Rights, helper_main, scratch::Scratch};
//! use groundswell::under::{Link, Options, Session};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! if helper_main().is_some() {
//!     return Ok(());
//! }
//! let rights = Rights::obtain()?;
//! let network = LinkKeys {
//!     rate: Some("50Mbit".parse()?),
//!     ..LinkKeys::default()
//! };
//! let command = ["curl", "-so", "/dev/null", "http://server/10MB"];
//! let command = command.map(str::to_owned).to_vec();
//! let scratch = Scratch::new()?;
//! let options = Options::new(Link::new("access-link", network), command);
//! let session = Session::new(options, scratch.path(), |_bytes| {})?;
//! let done = session.run(rights, Settings::default(), &|_event| {}, &|| false)?;
//! println!("{:?}", done.exits[0].status);
//! # Ok(())
//! # }
//! ```
//!
//! # What is stable
//!
//! At version 0, functions may change with any minor version, in Cargo's sense. Files do not: model files, run
//! directories and the output of `--json` keep their formats, or carry a new version number. Crates whose types appear in
//! signatures are re-exported: [`base`], [`emulate`], [`experiment`], [`host`] and [`traffic`].
//!
//! The Python package of the same name is separate: it calls the program.

pub mod fidelity;
pub mod files;
#[cfg(feature = "agents")]
pub mod generate;
pub mod learn;
pub mod memory;
pub mod model;
pub mod run;
pub mod show;
pub mod study;
pub mod under;

mod error;

pub use error::{Error, Kind};
pub use {
    swell_base as base, swell_emulate as emulate, swell_experiment as experiment,
    swell_host as host, swell_traffic as traffic,
};
