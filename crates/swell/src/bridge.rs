//! `swell bridge`: two interfaces that are there already, joined by an emulated link with background traffic on it.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use swell_emulate::backend::{Bridge, Settings};
use swell_experiment::Plan;
use swell_host::InterfaceFacts;
use swell_host::scratch::Scratch;

use crate::emulation::EmulationArgs;
use crate::fail::Fail;
use crate::output::Emulation;
use crate::under::args::LinkArgs;
use crate::under::experiment;
use crate::under::line::{Line, rates};
use crate::{control, interrupt, out, tables};

/// How long a bridge stands where nothing is said.
const DAY: swell_base::Dur = swell_base::Dur::from_millis(86_400_000);

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
    /// End after so long. Default: a day.
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
    let background = experiment::background(&args.link, scratch.path())?;
    let text = experiment::bridge(&args.link, &background, args.duration.unwrap_or(DAY))?;
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
    let bridge = Bridge {
        settings: &settings,
        spec: &spec,
        ends,
    };
    let conditions = bridge
        .stand(&ready, &interrupt::wished)
        .map_err(Fail::failed)?;
    line.clear();
    if json {
        let shown = Emulation::of(&conditions);
        out::json(&serde_json::to_value(shown).map_err(Fail::failed)?);
    } else if !args.quiet {
        out::say(&tables::emulator(&conditions));
    }
    Ok(())
}

/// What would make the bridge leak, loop or lose is refused or said.
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
        if !end.addresses.is_empty() {
            out::say(&format!(
                "warning: {name} has addresses of this machine ({}), which answers there itself",
                end.addresses.join(", ")
            ));
        }
    }
    if ends[0].mtu != ends[1].mtu {
        out::say(&format!(
            "warning: {} takes packets of {} bytes, {} of {}: larger ones are lost at the smaller one",
            ends[0].name, ends[0].mtu, ends[1].name, ends[1].mtu
        ));
    }
    Ok(())
}
