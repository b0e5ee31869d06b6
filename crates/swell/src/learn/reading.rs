//! The options of reading traces, and its progress bar.

use std::path::PathBuf;

use groundswell::learn::{Options, ReadAs};
use swell_capture::flow::{Metering, PacketSampling};
use swell_learn::Options as OfPackets;
use swell_traffic::Parameters;
use swell_traffic::flowlevel::{Options as OfFlows, Profile};

use crate::cli::{FlowProfile, LearnArgs};
use crate::fail::Fail;
use crate::out;

pub(super) fn options(args: &LearnArgs, name: String) -> Options {
    let flows = &args.flows;
    Options {
        name: Some(name),
        note: args.note.clone(),
        read_as: match (flows.packets, flows.flows) {
            (true, _) => ReadAs::Packets,
            (false, true) => ReadAs::Flows,
            (false, false) => ReadAs::Detect,
        },
        digest: flows.digest,
        packets: OfPackets {
            parameters: Parameters {
                group_timeout: args.group_timeout,
                session_timeout: args.session_timeout,
                ..OfPackets::default().parameters
            },
            inside: args.inside.clone(),
            link_rtt: args.link_rtt,
            link_rate: args.link_rate.map_or([None; 2], |rates| rates.map(Some)),
            length: args.length,
            budget: OfPackets::items(args.budget * 1000),
            apart: args.private.is_some(),
            ..OfPackets::default()
        },
        flows: OfFlows {
            profile: match flows.profile {
                FlowProfile::Fixed => Profile::Fixed,
                FlowProfile::Harpoon => Profile::Harpoon,
            },
            interval: flows.interval,
            session_gap: flows.session_gap,
            min_file: flows.min_file.0,
            capacity: flows.table_entries as usize,
            ..OfFlows::default()
        },
        metering: Metering {
            active_timeout: flows.active_timeout,
            inactive_timeout: flows.inactive_timeout,
            sampling: match flows.sample {
                1 => PacketSampling::All,
                interval => PacketSampling::Random { interval, seed: 1 },
            },
            ..Metering::default()
        },
        ipfix: flows.ipfix.clone(),
        only: None,
    }
}

/// Runs `read` on these files with a progress bar.
pub(crate) fn with_bar<T>(
    files: &[PathBuf],
    read: impl FnOnce(Box<dyn Fn(u64) + Send + Sync>) -> Result<T, Fail>,
) -> Result<T, Fail> {
    let length = |p: &PathBuf| std::fs::metadata(p).map_or(0, |m| m.len());
    let bar = out::bar(
        files.iter().map(length).sum(),
        "  reading [{bar:30}] {bytes}/{total_bytes}, {bytes_per_sec}, {eta} to go",
    );
    let shown = bar.clone();
    let log = out::Log::new();
    let done = read(Box::new(move |bytes| {
        shown.inc(bytes);
        let (at, all) = (shown.position(), shown.length().unwrap_or(0));
        log.tell(|| format!("read {} of {} MB", at / 1_000_000, all / 1_000_000));
    }))?;
    bar.finish_and_clear();
    Ok(done)
}
