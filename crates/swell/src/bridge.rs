//! `swell bridge`: joins existing interfaces by emulated links with background traffic.

mod nat;
mod network;
mod ports;
mod scenario;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use clap::Args;
use groundswell::files;
use groundswell::under::Background;
use serde::Serialize;
use swell_base::Warning;
use swell_emulate::backend::{Bridge, Settings};
use swell_emulate::{FaultCounts, FaultTally, Faults};
use swell_host::InterfaceFacts;
use swell_host::scratch::Scratch;

use self::nat::Nat;
use self::ports::{AttachmentPoint, Port};
use self::scenario::{Others, Scenario};
use crate::emulation::EmulationArgs;
use crate::fail::Fail;
use crate::output::Emulation;
use crate::under::args::LinkArgs;
use crate::under::line::{Line, rates};
use crate::{control, interrupt, out, tables};

#[derive(Debug, Args)]
#[command(
    after_help = "Every frame that comes in by one interface crosses the link and leaves by the other:\nIPv4, IPv6, ARP, tagged frames, multicast. Several interfaces on one side are like the\nports of a switch: frames between them do not cross the link. Needs CAP_NET_RAW in the\nnetwork namespace of the interfaces (root, as a rule). When it ends, in whichever way,\nnothing crosses any more. See docs/bridge.md.\n\n  swell bridge access-link --left veth-phone --right eth1 --rate 50Mbit --delay 15ms\n  swell bridge access-link --left tap0 --left tap1 --right eth1\n  swell bridge none --experiment lot.toml --left tap0 --port link2:left=tap1 --right eth1"
)]
pub(crate) struct BridgeArgs {
    #[command(flatten)]
    pub link: LinkArgs,
    /// An interface on the clients' side: what comes in here goes up. Again for more.
    #[arg(long, value_name = "INTERFACE", required_unless_present = "port")]
    pub left: Vec<String>,
    /// An interface on the servers' side. Again for more.
    #[arg(long, value_name = "INTERFACE", required_unless_present_any = ["port", "nat"])]
    pub right: Vec<String>,
    /// Join the network of an interface to the servers' side by NAT (IPv4), such as
    /// 'eth0 address=203.0.113.9/24 via=203.0.113.1'. ADDRESS is a free one of that network, and GATEWAY its router. INSIDE is
    /// the gateway's address for the hosts of the bridge (default: 192.168.77.1/24).
    #[arg(
        long,
        value_name = "INTERFACE address=ADDRESS/BITS via=GATEWAY [inside=INSIDE/BITS]",
        conflicts_with = "route"
    )]
    pub nat: Option<Nat>,
    /// The links of an experiment file instead of one. BACKGROUND is then one of its backgrounds, --left and --right
    /// are the ends of its first foreground's path.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "up", "down", "deliveries", "deliveries_up", "deliveries_down", "delay", "queue", "qdisc", "loss", "change", "load", "seed", "warmup", "scenario"])]
    pub experiment: Option<PathBuf>,
    /// An interface at an end of a link of the experiment, such as access:right=eth2. Again for more.
    #[arg(long, value_name = "LINK:END=INTERFACE", requires = "experiment")]
    pub port: Vec<Port>,
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
    /// Write the IP packets that cross to a pcapng file, as a capture at the first interface shows them.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    #[command(flatten)]
    pub emulation: EmulationArgs,
    /// Show nothing while it stands.
    #[arg(short, long)]
    pub quiet: bool,
}

/// What it says at the end.
#[derive(Serialize)]
struct Shown<'s> {
    #[serde(flatten)]
    emulation: Emulation,
    ports: Vec<ports::Shown<'s>>,
    /// What the faults of a scenario did to packets that left.
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<Met>,
    /// Doubts about the machine, as in `swell under`.
    warnings: Vec<Warning>,
}

/// What the faults of a scenario did, by the side where packets leave.
#[derive(Serialize)]
struct Met {
    left: MetSide,
    right: MetSide,
}

#[derive(Serialize)]
struct MetSide {
    /// Packets that the faults concern; of these, those that were dropped and those with a changed byte.
    packets: u64,
    dropped: u64,
    corrupted: u64,
    /// Senders that got a new port.
    rebound: u64,
}

impl From<FaultCounts> for MetSide {
    fn from(counts: FaultCounts) -> MetSide {
        MetSide {
            packets: counts.packets,
            dropped: counts.dropped,
            corrupted: counts.corrupted,
            rebound: counts.rebound,
        }
    }
}

pub(crate) fn bridge(args: &BridgeArgs, json: bool) -> Result<(), Fail> {
    let (places, interfaces) = check(args)?;
    let gateway = args.nat.as_ref().map(Nat::gateway).transpose()?;
    let scratch =
        Scratch::new().map_err(|e| Fail::failed(format!("no temporary directory: {e}")))?;
    let mut link = args.link.link();
    let mut faults = Faults::default();
    let mut others = None;
    if let Some(scenario) = &args.scenario {
        if link.load.is_some() && !scenario.others.takes_load() {
            return Err(
                Fail::usage("--load: the scenario says what its background is")
                    .hint("leave --load, or the background of the scenario"),
            );
        }
        link.network.rate = Some(scenario.rate);
        link.network.delay = Some(scenario.delay);
        link.network.queue = Some(scenario.queue);
        faults = scenario.faults.clone();
        faults.seed = link.seed;
        match &scenario.others {
            Others::Named => {}
            Others::Learnt(model, load) => {
                link.background.clone_from(model);
                link.load = load.or(link.load);
            }
            Others::Tcp => others = Some(Background::greedy()),
            Others::Udp(rate) => others = Some(Background::constant(*rate)),
        }
    }
    let network = match &args.experiment {
        Some(file) => network::of_file(file, &link.background, args.duration)?,
        None => network::of_link(&link, others, args.duration, scratch.path())?,
    };
    let inputs: Vec<PathBuf> = args.experiment.iter().cloned().collect();
    files::outputs(&args.pcap, &inputs)?;
    let layout = ports::layout(&network, &places, &interfaces)?;
    let names: Vec<&str> = interfaces.iter().map(|i| &*i.name).collect();
    let line = Arc::new(Line::new(rates(&network.plan), args.quiet || json));
    let all = names.join(", ");
    let settings = Settings {
        packets: args.pcap.clone(),
        control: Some(control::serve(
            scratch.path(),
            &format!("bridge of {all}"),
            false,
        )),
        watch: Some(Box::new({
            let line = Arc::clone(&line);
            move |s| line.show(s)
        })),
        ..args.emulation.settings()
    };
    interrupt::wishes();
    let ready = || {
        if !args.quiet {
            out::say(&format!("{all} are joined; Ctrl-C ends it"));
        }
    };
    let changed = |name: &str, there: bool| {
        out::say(&match there {
            false => format!("warning: interface {name} went away; the others remain joined"),
            true => format!("interface {name} is there again, and joined"),
        });
    };
    let tally = FaultTally::default();
    let bridge = Bridge {
        settings: &settings,
        spec: &network.spec,
        interfaces: &interfaces,
        layout: &layout,
        gateway: gateway.as_ref(),
        routed: args.route,
        faults: &faults,
        tally: &tally,
        changed: &changed,
    };
    let (conditions, counts) = bridge
        .stand(&ready, &interrupt::wished)
        .map_err(Fail::failed)?;
    line.clear();
    let ports = ports::shown(&places, &counts);
    let scenario = (faults != Faults::default()).then(|| {
        let ends = *tally.lock().unwrap_or_else(PoisonError::into_inner);
        let [left, right] = ends.map(MetSide::from);
        Met { left, right }
    });
    if json {
        let shown = Shown {
            emulation: Emulation::of(&conditions),
            ports,
            scenario,
            warnings: conditions.doubts(),
        };
        out::json(&serde_json::to_value(shown).map_err(Fail::failed)?);
    } else if !args.quiet {
        out::warnings(&conditions.doubts());
        out::say(&tables::under::emulator(&conditions));
        out::say(&ports::table(&ports));
        if let Some(scenario) = scenario {
            met(&scenario);
        }
    }
    Ok(())
}

/// Reports what happened to packets that faults concern.
fn met(scenario: &Met) {
    for (counts, side) in [(&scenario.left, "left"), (&scenario.right, "right")] {
        out::say(&format!(
            "of {} packets to the {side} that the scenario concerns {} were lost by it and {} corrupted; new ports of senders: {}",
            counts.packets, counts.dropped, counts.corrupted, counts.rebound
        ));
    }
}

/// Rejects, or warns of, settings with which the bridge would leak, loop or lose packets. Returns the interfaces.
fn check(args: &BridgeArgs) -> Result<(Vec<Port>, Vec<InterfaceFacts>), Fail> {
    let side = |names: &[String], place: AttachmentPoint| {
        let port = |name: &String| Port {
            place: place.clone(),
            interface: name.clone(),
        };
        names.iter().map(port).collect::<Vec<Port>>()
    };
    let [left, right] = [
        (&args.left, AttachmentPoint::Left),
        (&args.right, AttachmentPoint::Right),
    ];
    let places = [
        side(left.0, left.1),
        side(right.0, right.1),
        args.port.clone(),
        // The last one: `Bridge::gateway` is that of the last interface.
        args.nat.iter().map(Nat::port).collect(),
    ]
    .concat();
    let rights = args.right.len() + usize::from(args.nat.is_some());
    if args.scenario.is_some() && [args.left.len(), rights] != [1, 1] {
        return Err(Fail::usage(
            "a scenario is for one interface on each side, as the runner has them",
        ));
    }
    ports::check_names(&places)?;
    let facts = places.iter().map(|port| {
        let name = &port.interface;
        InterfaceFacts::of(name).map_err(|e| Fail::usage(format!("interface {name}: {e}")))
    });
    let ends: Vec<InterfaceFacts> = facts.collect::<Result<_, _>>()?;
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
        // The gateway has an address of its own beside those of the machine.
        let apart = args.nat.as_ref().is_some_and(|nat| nat.is_on(name));
        if !args.route && !apart && !end.addresses.is_empty() {
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
    let by_mtu = |end: &&InterfaceFacts| end.mtu;
    if let (Some(least), Some(most)) = (
        ends.iter().min_by_key(by_mtu),
        ends.iter().max_by_key(by_mtu),
    ) && least.mtu != most.mtu
    {
        out::say(&format!(
            "warning: {} takes packets of {} bytes, {} of {}: larger ones are lost at the smaller one",
            least.name, least.mtu, most.name, most.mtu
        ));
    }
    Ok((places, ends))
}
