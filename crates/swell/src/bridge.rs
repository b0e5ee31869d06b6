//! `swell bridge`: joins two existing interfaces by an emulated link with background traffic.

mod scenario;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use clap::Args;
use groundswell::under::{self, Background};
use swell_emulate::backend::{Bridge, Settings};
use swell_emulate::{FaultTally, Faults};
use swell_experiment::Plan;
use swell_host::InterfaceFacts;
use swell_host::scratch::Scratch;

use self::scenario::{Others, Scenario};
use crate::emulation::EmulationArgs;
use crate::fail::Fail;
use crate::output::Emulation;
use crate::under::args::LinkArgs;
use crate::under::line::{Line, rates};
use crate::{control, interrupt, learn, out, tables};

#[derive(Debug, Args)]
#[command(
    after_help = "Every frame that comes in by one interface crosses the link and leaves by the other:\nIPv4, IPv6, ARP, tagged frames, multicast. Needs CAP_NET_RAW in the network\nnamespace of the interfaces (root, as a rule). When it ends, in whichever way, nothing\ncrosses any more. See docs/bridge.md.\n\n  swell bridge access-link --left veth-phone --right eth1 --rate 50Mbit --delay 15ms"
)]
pub(crate) struct BridgeArgs {
    #[command(flatten)]
    pub link: LinkArgs,
    /// The interface on the clients' side: what comes in here goes up.
    #[arg(long, value_name = "INTERFACE")]
    pub left: String,
    /// The interface on the servers' side.
    #[arg(long, value_name = "INTERFACE")]
    pub right: String,
    /// Join them as a router does: packets that hosts on each side send through this machine cross.
    #[arg(long)]
    pub route: bool,
    /// A scenario as the QUIC interop runner writes it, such as 'drop-rate --delay=15ms --bandwidth=10Mbps --queue=25
    /// --rate_to_client=2 --rate_to_server=2'. Times count from the beginning.
    #[arg(long, value_name = "SCENARIO", conflicts_with_all = ["rate", "up", "down", "deliveries", "deliveries_up", "deliveries_down", "delay", "queue", "loss", "change"])]
    pub scenario: Option<Scenario>,
    /// End after so long. Default: a day, the warm-up included.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<swell_base::Dur>,
    /// Write the IP packets that cross, as both ends see them, to a pcapng file.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    #[command(flatten)]
    pub emulation: EmulationArgs,
    /// Show nothing while it stands.
    #[arg(short, long)]
    pub quiet: bool,
}

pub(crate) fn bridge(args: &BridgeArgs, json: bool) -> Result<(), Fail> {
    check(args)?;
    let scratch =
        Scratch::new().map_err(|e| Fail::failed(format!("no temporary directory: {e}")))?;
    let mut link = args.link.link();
    let mut faults = Faults::default();
    let mut others = None;
    if let Some(scenario) = &args.scenario {
        link.network.rate = Some(scenario.rate);
        link.network.delay = Some(scenario.delay);
        link.network.queue = Some(scenario.queue);
        faults = scenario.faults.clone();
        faults.seed = link.seed;
        match &scenario.others {
            Others::Named => {}
            Others::Learnt(model, load) => {
                link.background.clone_from(model);
                link.load = *load;
            }
            Others::Tcp => others = Some(Background::greedy()),
            Others::Udp(rate) => others = Some(Background::constant(*rate)),
        }
    }
    let background = match others {
        Some(background) => background,
        None => learn::with_bar(&[link.background.clone().into()], |progress| {
            under::background(&link.background, scratch.path(), progress)
        })?,
    };
    let text = under::bridge(&link, &background, args.duration)?;
    let here = std::env::current_dir().map_err(Fail::failed)?;
    let plan = Plan::resolve(&text, "swell bridge", &here).map_err(Fail::usage)?;
    let spec = plan
        .cells
        .first()
        .and_then(|cell| plan.spec(cell, &Default::default()));
    let spec = spec.ok_or_else(|| Fail::failed("the link has no run"))?;
    let line = Arc::new(Line::new(rates(&plan), args.quiet || json));
    let settings = Settings {
        packets: args.pcap.clone(),
        control: Some(control::serve(
            scratch.path(),
            &format!("bridge of {} and {}", args.left, args.right),
        )),
        watch: Some(Box::new({
            let line = Arc::clone(&line);
            move |s| line.show(s)
        })),
        ..args.emulation.settings()
    };
    interrupt::wishes();
    let ends = [args.left.as_str(), args.right.as_str()];
    let ready = || {
        if !args.quiet {
            out::say(&format!(
                "{} and {} are joined; Ctrl-C ends it",
                ends[0], ends[1]
            ));
        }
    };
    let tally = FaultTally::default();
    let bridge = Bridge {
        settings: &settings,
        spec: &spec,
        ends,
        routed: args.route,
        faults: &faults,
        tally: &tally,
    };
    let conditions = bridge
        .stand(&ready, &interrupt::wished)
        .map_err(Fail::failed)?;
    line.clear();
    if json {
        let shown = Emulation::of(&conditions);
        out::json(&serde_json::to_value(shown).map_err(Fail::failed)?);
    } else if !args.quiet {
        out::say(&tables::under::emulator(&conditions));
        if faults != Faults::default() {
            met(&tally);
        }
    }
    Ok(())
}

/// Reports what happened to packets that faults concern.
fn met(tally: &FaultTally) {
    let ends = *tally.lock().unwrap_or_else(PoisonError::into_inner);
    for (counts, side) in ends.iter().zip(["left", "right"]) {
        out::say(&format!(
            "of {} packets to the {side} that the scenario concerns {} were lost by it and {} corrupted; new ports of senders: {}",
            counts.packets, counts.dropped, counts.corrupted, counts.rebound
        ));
    }
}

/// Rejects, or warns of, settings with which the bridge would leak, loop or lose packets.
fn check(args: &BridgeArgs) -> Result<(), Fail> {
    if args.left == args.right {
        return Err(Fail::usage("--left and --right are one interface"));
    }
    let facts = [&args.left, &args.right].map(|name| {
        InterfaceFacts::of(name).map_err(|e| Fail::usage(format!("interface {name}: {e}")))
    });
    let [left, right] = facts;
    let ends = [left?, right?];
    for end in &ends {
        let name = &end.name;
        if args.route && end.addresses.is_empty() {
            return Err(Fail::usage(format!(
                "{name} has no address, so nobody can send anything through this machine"
            ))
            .hint(format!("`ip addr add ADDRESS dev {name}`")));
        }
        if !end.ethernet {
            return Err(Fail::usage(format!("{name} carries no Ethernet frames")));
        }
        if end.enslaved {
            return Err(Fail::usage(format!(
                "{name} belongs to a bridge or bond of the kernel, which would carry the same frames past the link"
            ))
            .hint(format!("`ip link set {name} nomaster`")));
        }
        if !end.up {
            return Err(
                Fail::usage(format!("{name} is down")).hint(format!("`ip link set {name} up`"))
            );
        }
        if !args.route && !end.addresses.is_empty() {
            out::say(&format!(
                "warning: {name} has addresses of this machine ({}), which answers there itself",
                end.addresses.join(", ")
            ));
        }
    }
    if args.route
        && std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").is_ok_and(|t| t.trim() != "0")
    {
        out::say(
            "warning: this machine's kernel forwards packets, too, past the link, unless its rules drop them (`iptables -A FORWARD -j DROP`)",
        );
    }
    if ends[0].mtu != ends[1].mtu {
        out::say(&format!(
            "warning: {} takes packets of {} bytes, {} of {}: larger ones are lost at the smaller one",
            ends[0].name, ends[0].mtu, ends[1].name, ends[1].mtu
        ));
    }
    Ok(())
}
