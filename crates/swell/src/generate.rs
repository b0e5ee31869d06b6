//! `swell generate`: drives agents, shows how it goes, keeps what comes home.

mod fleet;
pub(crate) mod keep;
pub(crate) mod local;

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use groundswell::files::parent_exists;
use indicatif::ProgressBar;
use swell_base::{Dur, Severity, Warning};
use swell_experiment::bundled;
use swell_generate::agent::{
    Address, Controller, ModelPart, Order, Standing, StatisticsView, TrafficPart, Trust,
};
use swell_host::Rights;
use swell_traffic::flowlevel::FlowModel;

use self::fleet::Fleet;
use self::keep::{Keeper, Totals};
use self::local::Local;
use crate::cli::GenerateArgs;
use crate::fail::Fail;
use crate::{interrupt, out, tables};

/// How often agents are asked how they stand.
const LOOK: Duration = Duration::from_millis(500);

/// Flows are fetched so often at a time, before there is another look.
const FETCHES: usize = 20;

/// Why the play ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Played,
    Duration,
    Interrupted,
    Gone,
}

pub(crate) fn generate(
    args: &GenerateArgs,
    rights: Option<&Rights>,
    json: bool,
) -> Result<(), Fail> {
    let (name, traffic, length) = traffic(args)?;
    let dir = directory(args)?;
    let local = rights.map(Local::new).transpose()?;
    let order = order(args, traffic, local.as_ref())?;
    interrupt::wishes();
    let mut controller = Controller::new(&order).map_err(|e| {
        let fail = Fail::failed(e);
        fail.hint("`swell agent` runs on every host; see docs/generate.md")
    })?;
    let end = args.duration.or(length);
    let begun = Keeper::new(&dir, &name, &order, [length, end])
        .and_then(|keeper| controller.start().map_err(Fail::failed).map(|()| keeper));
    let mut keeper = match begun {
        Ok(keeper) => keeper,
        Err(fail) => {
            controller.end();
            return Err(fail);
        }
    };
    let line = Line::new(end, args.quiet || json);
    let loads = typed_loads(!args.quiet && !json);
    let played = play(&mut controller, &mut keeper, args, &line, &loads);
    line.bar.finish_and_clear();
    let lost = lost(&controller);
    // Whatever happened, agents stop and what they have is fetched.
    controller.stop();
    let kept = played.and_then(|how| {
        while keeper.take(&mut controller)? {}
        Ok(how)
    });
    let (clients, servers) = controller.standing();
    controller.end();
    let ended = *kept.as_ref().unwrap_or(&Ended::Gone);
    let doubts = doubts(&clients, &servers, &lost);
    let all = Agents {
        clients: &clients,
        servers: &servers,
        lost: &lost,
    };
    let finished = keeper.finish(ended, &all, &doubts);
    kept?;
    let totals = finished?;
    let how = match (json, args.quiet) {
        (true, _) => Said::Json,
        (false, true) => Said::Doubts,
        (false, false) => Said::All,
    };
    say(&dir, &totals, &all, &doubts, ended, how);
    match ended {
        Ended::Played | Ended::Duration if lost.len() > args.allow_loss => {
            let names = lost.join(", ");
            let fail = Fail::failed(format!("{} agents were lost: {names}", lost.len()));
            Err(fail.hint("--allow-loss N takes the loss of N; what there is is kept"))
        }
        Ended::Played | Ended::Duration => Ok(()),
        Ended::Interrupted => Err(Fail::interrupted(
            "interrupted; what there is so far is kept",
        )),
        Ended::Gone => Err(Fail::failed(
            "every client is gone; what there is so far is kept",
        )),
    }
}

/// How all agents stand at the end.
pub(crate) struct Agents<'a> {
    pub clients: &'a [Standing],
    pub servers: &'a [Standing],
    /// Those that did not come back, by name.
    pub lost: &'a [String],
}

impl Agents<'_> {
    /// The agents as JSON: clients, then servers.
    pub fn to_json(&self) -> [serde_json::Value; 2] {
        [self.clients, self.servers].map(|all| all.iter().map(|s| self.agent(s)).collect())
    }

    fn agent(&self, s: &Standing) -> serde_json::Value {
        serde_json::json!({
            "agent": s.agent,
            "statistics": s.statistics,
            "flows_lost": s.lost + s.waiting,
            "lost": self.lost.contains(&s.agent),
            "away_s": s.away.as_secs_f64(),
            "returns": s.returns,
            "clock": s.beginning.map(|b| serde_json::json!({
                "offset_s": b.offset_s, "uncertainty_s": b.uncertainty_s,
            })),
        })
    }
}

/// Agents that play nothing any more: their lease ran out, or they do not answer.
fn lost(controller: &Controller) -> Vec<String> {
    let (clients, servers) = controller.standing();
    let all = clients.iter().chain(&servers);
    all.filter(|s| s.missing).map(|s| s.agent.clone()).collect()
}

/// Name, what is played, and how long that takes if it ends.
fn traffic(args: &GenerateArgs) -> Result<(String, TrafficPart, Option<Dur>), Fail> {
    if let Some(sessions) = args.closed {
        let part = TrafficPart::Closed {
            sessions,
            up: args.up.map_or(100, |b| b.0),
            down: args.down.map_or(0, |b| b.0),
        };
        return Ok(("closed".into(), part, None));
    }
    let Some(path) = &args.model else {
        let fail = Fail::usage("what is to be played?");
        return Err(fail.hint("a flow-level model, or --closed SESSIONS for a measurement"));
    };
    let wrong = |e: &dyn std::fmt::Display| Fail::usage(format!("{}: {e}", path.display()));
    let bytes = match path.to_str().and_then(bundled::flow_model) {
        Some(bytes) => bytes.to_vec(),
        None => std::fs::read(path).map_err(|e| {
            let known: Vec<&str> = bundled::flow_models().collect();
            wrong(&e).hint(format!(
                "a flow-level model's file, or a bundled one: {}",
                known.join(", ")
            ))
        })?,
    };
    let model = FlowModel::from_slice(&bytes).map_err(|e| {
        let fail = wrong(&e);
        fail.hint("live generation plays flow-level models (docs/flow-model.md)")
    })?;
    let part = ModelPart {
        model: model.to_json(),
        seed: args.seed,
        load: args.load,
        compression: args.compress,
        first: args.first,
        cycle: args.cycle,
    };
    let plan = part.plan(&model).map_err(|e| wrong(&e))?;
    out::warnings(&model.warnings);
    out::warnings(quiet_beginning(&model, args).as_slice());
    Ok((model.name, TrafficPart::Model(part), plan.length()))
}

/// Whoever waits for traffic that does not come for hours wants to know why.
fn quiet_beginning(model: &FlowModel, args: &GenerateArgs) -> Option<Warning> {
    let first = usize::try_from(args.first).ok()?;
    let left = model.tcp.intervals.get(first..)?;
    let quiet = left.iter().position(|i| i.connections > 0)?;
    let time = model.interval.scale(quiet as f64 / args.compress);
    (quiet > 0).then(|| {
        let begin = first + quiet;
        Warning::note(
            "quiet-beginning",
            format!(
                "the model has no connection in the first {time}: --first {begin} begins with one"
            ),
        )
    })
}

fn directory(args: &GenerateArgs) -> Result<PathBuf, Fail> {
    let dir = match &args.output {
        Some(dir) => dir.clone(),
        None => PathBuf::from("runs").join("generate"),
    };
    if args.output.is_some() {
        parent_exists(&dir)?;
    }
    let used = std::fs::read_dir(&dir).is_ok_and(|mut all| all.next().is_some());
    if used && !args.fresh {
        let fail = Fail::usage(format!("{} holds a run", dir.display()));
        return Err(fail.hint("--fresh throws it away, -o DIR keeps it"));
    }
    if used {
        keep::remove_run(&dir)?;
    }
    Ok(dir)
}

fn order(args: &GenerateArgs, traffic: TrafficPart, local: Option<&Local>) -> Result<Order, Fail> {
    let names = |all: &[String]| all.iter().map(|n| Address::from(n.as_str())).collect();
    let fleet = args.fleet.as_deref().map(fleet::read).transpose()?;
    let (clients, servers) = match (local, &fleet) {
        (Some(local), _) => (vec![local.client()], vec![local.server()]),
        (None, Some(fleet)) => fleet.addresses(),
        (None, None) => (names(&args.clients), names(&args.servers)),
    };
    let own = |of: fn(&Fleet) -> Option<PathBuf>| fleet.as_ref().and_then(of);
    let token_file = args.token_file.clone().or_else(|| own(Fleet::token_file));
    let token = match (local, token_file) {
        (Some(local), _) => local.token(),
        (None, Some(file)) => crate::agent::token(&file)?,
        (None, None) => {
            let fail = Fail::usage("agents take orders only from who has their token");
            return Err(fail.hint("--token-file FILE, or --local to play on this machine alone"));
        }
    };
    let trust = if let Some(path) = args.ca.clone().or_else(|| own(Fleet::ca)) {
        Trust::Authorities(path)
    } else if args.fingerprint.is_empty() {
        Trust::Loopback
    } else {
        Trust::Fingerprints(args.fingerprint.clone())
    };
    Ok(Order {
        clients,
        servers,
        token,
        trust,
        traffic,
        lease: args.lease,
        threads: args.threads,
        flows: !args.counts_only,
        keep: args.keep,
        dscp: args.dscp.clone(),
        congestion: args.congestion.clone(),
    })
}

/// Loads that are typed while traffic is played, one a line; those that are none are said to be.
fn typed_loads(talk: bool) -> mpsc::Receiver<f64> {
    let (send, receive) = mpsc::channel();
    if std::io::stdin().is_terminal() && !in_foreground() {
        return receive;
    }
    // It ends with standard input, or with the process.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            match line.trim().parse::<f64>() {
                Ok(load) if load.is_finite() && load > 0.0 => {
                    if send.send(load).is_err() {
                        return;
                    }
                }
                _ if line.trim().is_empty() || !talk => {}
                _ => out::say(&format!(
                    "`{}` is no load: type a factor above 0, such as 0.5",
                    line.trim()
                )),
            }
        }
    });
    receive
}

/// Whether this process may read from its terminal: one in the background would be stopped for it
/// (proc_pid_stat(5), process group and that of the terminal).
fn in_foreground() -> bool {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |s| s.1).split_whitespace();
    let fields: Vec<&str> = fields.collect();
    fields.len() > 5 && fields[2] == fields[5]
}

fn play(
    controller: &mut Controller,
    keeper: &mut Keeper,
    args: &GenerateArgs,
    line: &Line,
    loads: &mpsc::Receiver<f64>,
) -> Result<Ended, Fail> {
    let begun = Instant::now();
    let mut before = None;
    let mut playing = args.load;
    loop {
        let round = Instant::now();
        for _ in 0..FETCHES {
            if !keeper.take(controller)? {
                break;
            }
        }
        for agent in controller.admit() {
            line.bar.suspend(|| out::say(&format!("{agent} is back")));
        }
        keeper.note(begun.elapsed(), controller)?;
        line.show(begun.elapsed(), controller, &mut before);
        for load in loads.try_iter() {
            match controller.set_load(load) {
                Ok(()) => {
                    keeper.loaded(begun.elapsed(), load);
                    let was = std::mem::replace(&mut playing, load);
                    line.bar
                        .suspend(|| out::say(&format!("load {was} is now {load}")));
                }
                Err(error) => line.bar.suspend(|| {
                    out::say(&format!("load {load}: {error}; it may still be {playing}"));
                }),
            }
        }
        let over = |limit: Dur| begun.elapsed().as_secs_f64() >= limit.as_secs_f64();
        if interrupt::wished() {
            return Ok(Ended::Interrupted);
        }
        if args.duration.is_some_and(over) {
            return Ok(Ended::Duration);
        }
        if controller.is_over() {
            let (clients, _) = controller.standing();
            let played = |s: &Standing| {
                let state = s.statistics.as_ref().map(|s| s.run.state.as_str());
                state == Some("played")
            };
            let any = clients.iter().any(played);
            return Ok(if any { Ended::Played } else { Ended::Gone });
        }
        let left = args.duration.map_or(LOOK, |limit| {
            let left = limit.as_secs_f64() - begun.elapsed().as_secs_f64();
            Duration::from_secs_f64(left.max(0.0))
        });
        std::thread::sleep(LOOK.saturating_sub(round.elapsed()).min(left));
    }
}

/// The line that shows how it goes.
struct Line {
    bar: ProgressBar,
}

/// Time, bytes up and down, transfers.
type Before = Option<(Duration, [u64; 3])>;

impl Line {
    fn new(length: Option<Dur>, quiet: bool) -> Line {
        let bar = match length {
            Some(length) => out::bar((length.as_secs_f64() * 10.0) as u64, "[{bar:20}] {msg}"),
            None => out::bar(0, "{spinner} {elapsed} {msg}"),
        };
        if quiet {
            bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
        }
        Line { bar }
    }

    fn show(&self, now: Duration, controller: &Controller, before: &mut Before) {
        let (clients, _) = controller.standing();
        let sum = |f: &dyn Fn(&StatisticsView) -> u64| -> u64 {
            let all = clients.iter().filter_map(|c| c.statistics.as_ref());
            all.map(f).sum()
        };
        let counts = [
            sum(&|s| s.counts.sent_bytes + s.counts.datagram_bytes_sent),
            sum(&|s| s.counts.received_bytes + s.counts.datagram_bytes_received),
            sum(&|s| s.counts.done),
        ];
        let late = clients.iter().filter_map(|c| c.statistics.as_ref());
        let late = late.map(|s| s.late.p99_us).fold(0.0, f64::max);
        self.bar.set_position((now.as_secs_f64() * 10.0) as u64);
        if let Some((then, old)) = before {
            let span = (now - *then).as_secs_f64().max(1e-3);
            let rate = |i: usize| counts[i].saturating_sub(old[i]) as f64 / span;
            self.bar.set_message(format!(
                "up {:.1} down {:.1} Mbit/s, {:.0} transfers/s, {} sessions, late {:.1} ms",
                rate(0) * 8e-6,
                rate(1) * 8e-6,
                rate(2),
                sum(&|s| s.sessions),
                late / 1e3
            ));
        }
        *before = Some((now, counts));
    }
}

/// What to know before trusting the results, agent by agent.
fn doubts(clients: &[Standing], servers: &[Standing], lost: &[String]) -> Vec<Warning> {
    let mut all = Vec::new();
    for standing in clients.iter().chain(servers) {
        let agent = &standing.agent;
        if lost.contains(agent) {
            let text = "was lost: it did not answer for as long as its lease, and plays nothing";
            all.push(Warning::warning("agent-lost", format!("{agent} {text}")));
        } else if standing.returns > 0 {
            let text = format!(
                "{agent} played nothing for {:.1} s: it was cut off or started anew, and came back \
                 (times: {})",
                standing.away.as_secs_f64(),
                standing.returns
            );
            all.push(Warning::warning("agent-returned", text));
        }
        if let Some(trouble) = &standing.trouble {
            let text = format!("{agent} could not be asked at times: {trouble}");
            all.push(Warning::warning("agent-away", text));
        }
        for (flows, why) in [
            (standing.lost, "it had no more room for them"),
            (standing.waiting, "it could not be asked for them any more"),
        ] {
            if flows > 0 {
                let text = format!("{flows} flows of {agent} are lost: {why}");
                all.push(Warning::warning("flows-lost", text));
            }
        }
        let own = standing.statistics.iter().flat_map(|s| &s.warnings);
        all.extend(own.map(|w| Warning {
            code: w.code.clone(),
            severity: Severity::Warning,
            message: format!("{agent}: {}", w.message),
        }));
    }
    all
}

/// What is said at the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    All,
    Doubts,
    Json,
}

fn say(
    dir: &std::path::Path,
    totals: &Totals,
    agents: &Agents<'_>,
    doubts: &[Warning],
    ended: Ended,
    how: Said,
) {
    if how == Said::Json {
        let [clients, servers] = agents.to_json();
        out::json(&serde_json::json!({
            "run": dir, "ended": keep::word(ended), "seconds": totals.seconds, "flows": totals.flows,
            "lost": agents.lost, "clients": clients, "servers": servers, "warnings": doubts,
        }));
        return;
    }
    out::warnings(doubts);
    if how == Said::Doubts {
        return;
    }
    out::data(&tables::agents::list_of(totals.seconds, agents));
    out::data(&format!("kept: {} ({} flows)", dir.display(), totals.flows));
}
