//! `swell generate`: drives agents and shows their progress.

use std::cell::RefCell;
use std::io::{BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use groundswell::generate::{
    self, Address, Controller, EndCause, Event, Fleet, Local, ModelPart, Options, Order, Played,
    Rendezvous, StatisticsView, Traffic, TrafficPart, Trust, kept,
};
use indicatif::ProgressBar;
use swell_base::{Bytes, Dur};
use swell_generate::agent::is_fingerprint;
use swell_host::Rights;

use crate::cli::GenerateArgs;
use crate::fail::Fail;
use crate::{interrupt, out, output, tables};

pub(crate) fn generate(
    args: &GenerateArgs,
    rights: Option<&Rights>,
    json: bool,
) -> Result<(), Fail> {
    check(args)?;
    let traffic = traffic(args)?;
    let program = std::env::current_exe().map_err(Fail::failed)?;
    let local = rights.map(|rights| Local::new(rights, &program));
    let local = local.transpose()?;
    let order = order(args, traffic.part, local.as_ref())?;
    out::warnings(&traffic.doubts);
    let options = Options {
        order,
        dir: generate::directory(args.output.as_deref(), args.fresh)?,
        fresh: args.fresh,
        name: traffic.name,
        length: traffic.length,
        duration: args.duration,
    };
    // With --json, too: agents cannot be set up without it, and messages go to standard error.
    if let (Some(at), false) = (&options.order.rendezvous, args.quiet) {
        let (address, fingerprint) = (at.address(), at.fingerprint());
        out::say(&format!(
            "agents dial in to {address}; its fingerprint: {fingerprint}"
        ));
    }
    if !args.quiet {
        out::say(&announced(&options));
    }
    interrupt::wishes();
    let line = Line::new(args.duration.or(traffic.length), args.quiet || json);
    let loads = typed_loads(!args.quiet);
    let say = |text: String| line.bar.suspend(|| out::say(&text));
    let events = |event: Event<'_>| match event {
        Event::Look(now, controller) => line.show(now, controller),
        Event::Returned(agent) => say(format!("{agent} is back")),
        Event::Loaded(was, load, missed) => say(loaded(was, load, missed)),
        Event::Refused(load, error, _) if args.closed.is_some() => {
            say(format!("load {load}: {error}"));
        }
        Event::Refused(load, error, playing) => {
            say(format!("load {load}: {error}; it may still be {playing}"));
        }
        Event::Draining(0) => say("the model is over; waiting for its last transfers".into()),
        Event::Draining(n) => say(format!(
            "the model is over; waiting for {n} transfers and datagram sources in progress"
        )),
    };
    let played = generate::generate(&options, &loads, &events, &interrupt::wished);
    line.bar.finish_and_clear();
    let played = played?;
    let how = match (json, args.quiet) {
        (true, _) => Said::Json,
        (false, true) => Said::Doubts,
        (false, false) => Said::All,
    };
    show(&options.dir, &played, how);
    let lost = &played.agents.lost;
    match played.ended {
        EndCause::Played | EndCause::Duration if lost.len() > args.allow_loss => {
            let names = lost.join(", ");
            let fail = Fail::failed(match lost.len() {
                1 => format!("an agent was lost: {names}"),
                n => format!("{n} agents were lost: {names}"),
            });
            Err(fail.hint("--allow-loss N takes the loss of N; what there is is kept"))
        }
        EndCause::Played | EndCause::Duration => Ok(()),
        EndCause::Interrupted => Err(Fail::interrupted(
            "interrupted; what there is so far is kept",
        )),
        EndCause::Gone => Err(Fail::failed(
            "every client is gone; what there is so far is kept",
        )),
    }
}

/// Shortest and longest lease of an agent, seconds.
const LEASES: std::ops::RangeInclusive<f64> = 0.5..=60.0;

/// Checks numbers and addresses that the parser of arguments accepts.
fn check(args: &GenerateArgs) -> Result<(), Fail> {
    if args.closed == Some(0) {
        let fail = Fail::usage("--closed 0: no session would play anything");
        return Err(fail.hint("at least --closed 1"));
    }
    if args.duration == Some(Dur::ZERO) {
        let fail = Fail::usage("--duration 0s: nothing would be played");
        return Err(fail
            .hint("without --duration, a model is played to its end, and --closed until Ctrl-C"));
    }
    if !LEASES.contains(&args.lease.as_secs_f64()) {
        let fail = Fail::usage(format!("--lease {}: too short or too long", args.lease));
        return Err(fail.hint("500ms to 60s"));
    }
    for (option, addresses) in [("--clients", &args.clients), ("--servers", &args.servers)] {
        for address in addresses {
            generate::is_address(address).map_err(|e| Fail::usage(format!("{option} {e}")))?;
        }
    }
    for print in &args.fingerprint {
        is_fingerprint(print).map_err(|e| Fail::usage(format!("--fingerprint: {e}")))?;
    }
    Ok(())
}

/// What became of a new load, with the names of clients that `missed` it.
fn loaded(was: f64, load: f64, missed: &[String]) -> String {
    let now = format!("load {was} is now {load}");
    match missed {
        [] => now,
        [one] => format!("{now} at all clients but {one}, which gets it when it is back"),
        several => format!(
            "{now} at all clients but {}, which get it when they are back",
            several.join(", ")
        ),
    }
}

/// What is going to be played, in a sentence.
fn announced(options: &Options) -> String {
    let what = match &options.order.traffic {
        TrafficPart::Closed { sessions, up, down } => format!(
            "{} of one transfer after the other, {} up and {} down",
            number(*sessions as usize, "session"),
            Bytes(*up),
            Bytes(*down)
        ),
        TrafficPart::Model(_) => options.name.clone(),
    };
    let end = match (options.duration, options.length) {
        (Some(time), length) if length.is_none_or(|l| time < l) => format!("for {time}"),
        (_, Some(length)) => format!("for {:.1} s", length.as_secs_f64()),
        _ => "until Ctrl-C".into(),
    };
    let order = &options.order;
    format!(
        "playing {what}, {end}, from {} to {}",
        number(order.clients.len(), "client"),
        number(order.servers.len(), "server")
    )
}

fn number(n: usize, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        _ => format!("{n} {what}s"),
    }
}

/// The traffic to generate.
fn traffic(args: &GenerateArgs) -> Result<Traffic, Fail> {
    if let Some(sessions) = args.closed {
        return Ok(Traffic {
            name: "closed".into(),
            part: TrafficPart::Closed {
                sessions,
                up: args.up.map_or(100, |b| b.0),
                down: args.down.map_or(0, |b| b.0),
            },
            length: None,
            doubts: Vec::new(),
        });
    }
    let Some(path) = &args.model else {
        let fail = Fail::usage("what is to be played?");
        return Err(fail.hint("a flow-level model, or --closed SESSIONS for a measurement"));
    };
    let part = ModelPart {
        model: String::new(),
        seed: args.seed,
        load: args.load,
        compression: args.compress,
        first: args.first,
        cycle: args.cycle,
    };
    Traffic::of_model(path, part)
}

fn order(args: &GenerateArgs, traffic: TrafficPart, local: Option<&Local>) -> Result<Order, Fail> {
    let names = |all: &[String]| all.iter().map(|n| Address::from(n.as_str())).collect();
    let fleet = args.fleet.as_deref().map(Fleet::read).transpose()?;
    let (clients, servers) = match (local, &fleet) {
        (Some(local), _) => (vec![local.client()], vec![local.server()]),
        (None, Some(fleet)) => fleet.addresses(),
        (None, None) => (names(&args.clients), names(&args.servers)),
    };
    match (args.listen, &fleet) {
        (None, Some(fleet)) if fleet.dials() => {
            let fail = Fail::usage("agents of the fleet dial in, but nobody listens");
            return Err(fail.hint("--listen ADDR:PORT --state DIR"));
        }
        (Some(_), Some(fleet)) if !fleet.dials() => {
            let fail = Fail::usage("--listen: no agent of the fleet dials in");
            return Err(fail.hint("`dial = true` instead of an address, in the fleet file"));
        }
        _ => {}
    }
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
    let rendezvous = match (args.listen, &args.state) {
        (Some(listen), Some(state)) => {
            let identity = kept(state).map_err(Fail::usage)?;
            let made = Rendezvous::new(listen, identity);
            Some(made.map_err(|e| Fail::usage(format!("--listen {listen}: {e}")))?)
        }
        _ => None,
    };
    Ok(Order {
        clients,
        servers,
        token,
        trust,
        rendezvous: rendezvous.map(Arc::new),
        traffic,
        lease: args.lease,
        threads: args.threads,
        flows: !args.counts_only,
        keep: args.keep,
        dscp: args.dscp.clone(),
        congestion: args.congestion.clone(),
    })
}

/// Reads loads typed on standard input while traffic runs; `talk` reports lines that are none.
fn typed_loads(talk: bool) -> mpsc::Receiver<f64> {
    let (send, receive) = mpsc::channel();
    if std::io::stdin().is_terminal() && !in_foreground() {
        return receive;
    }
    // The thread ends with standard input or with the process.
    std::thread::spawn(move || {
        let refuse = |line: &str| {
            if talk {
                let text = format!("`{line}` is no load: type a factor above 0, such as 0.5");
                out::say(&text);
            }
        };
        read_loads(std::io::stdin().lock(), &send, refuse);
    });
    receive
}

/// Maximum length of a line with a load, in bytes.
const LONGEST: u64 = 100;

/// Sends the loads of an input, one per line, until it ends or nobody receives them. Lines that are no load, not UTF-8
/// or too long go to `refuse`, up to their maximum length.
fn read_loads(mut input: impl BufRead, send: &mpsc::Sender<f64>, refuse: impl Fn(&str)) {
    let mut line = Vec::new();
    // Whether the next piece continues a line that was refused as too long.
    let mut goes_on = false;
    loop {
        line.clear();
        match input.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let whole = line.ends_with(b"\n") || (line.len() as u64) < LONGEST;
        if std::mem::replace(&mut goes_on, !whole) {
            continue;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        match text.parse::<f64>() {
            Ok(load) if whole && load.is_finite() && load > 0.0 => {
                if send.send(load).is_err() {
                    return;
                }
            }
            _ if whole && text.is_empty() => {}
            _ => refuse(text),
        }
    }
}

/// Whether this process may read from its terminal: the kernel stops a background process that tries
/// (proc_pid_stat(5), process group and foreground group of the terminal).
fn in_foreground() -> bool {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |s| s.1).split_whitespace();
    let fields: Vec<&str> = fields.collect();
    fields.len() > 5 && fields[2] == fields[5]
}

/// The progress line.
struct Line {
    bar: ProgressBar,
    before: RefCell<Before>,
    log: Option<out::Log>,
}

/// The previous sample: time; bytes up, bytes down, transfers.
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
        Line {
            bar,
            before: RefCell::default(),
            log: (!quiet).then(out::Log::new),
        }
    }

    fn show(&self, now: Duration, controller: &Controller) {
        let mut before = self.before.borrow_mut();
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
        if let Some((then, old)) = &*before {
            let span = (now - *then).as_secs_f64().max(1e-3);
            let rate = |i: usize| counts[i].saturating_sub(old[i]) as f64 / span;
            let message = format!(
                "up {:.1} down {:.1} Mbit/s, {:.0} transfers/s, {} sessions, late {:.1} ms",
                rate(0) * 8e-6,
                rate(1) * 8e-6,
                rate(2),
                sum(&|s| s.sessions),
                late / 1e3
            );
            if let Some(log) = &self.log {
                log.tell(|| message.clone());
            }
            self.bar.set_message(message);
        }
        *before = Some((now, counts));
    }
}

/// What to print at the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    All,
    Doubts,
    Json,
}

fn show(dir: &Path, played: &Played, how: Said) {
    let agents = &played.agents;
    if how == Said::Json {
        let [clients, servers] = agents.to_json();
        out::json(&serde_json::json!({
            "run": output::path(dir), "ended": played.ended.word(), "seconds": played.seconds, "flows": played.flows,
            "lost": agents.lost, "clients": clients, "servers": servers, "warnings": played.doubts,
        }));
        return;
    }
    out::warnings(&played.doubts);
    if how == Said::Doubts {
        return;
    }
    out::data(&tables::agents::list_of(played.planned, agents));
    out::data(&format!("kept: {} ({} flows)", dir.display(), played.flows));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_load_are_refused_and_the_next_one_is_read() {
        let long = format!("1{}\n", "0".repeat(250));
        let input = [
            &b"0.5\n\n -1\nnan\n2\xff\n1e999\n"[..],
            long.as_bytes(),
            b" 2 \r\nhalf\n3",
        ]
        .concat();
        let (send, receive) = mpsc::channel();
        let refused = RefCell::new(Vec::new());
        read_loads(&input[..], &send, |line| {
            refused.borrow_mut().push(line.to_owned());
        });
        drop(send);
        assert_eq!(receive.iter().collect::<Vec<f64>>(), [0.5, 2.0, 3.0]);
        let wanted = ["-1", "nan", "2\u{fffd}", "1e999", &long[..100], "half"];
        assert_eq!(refused.into_inner(), wanted);
    }
}
