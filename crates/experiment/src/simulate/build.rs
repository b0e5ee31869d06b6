//! From a run, everything said, to links and machines.

use std::sync::Arc;

use swell_base::{Bytes, Dur, Warning};
use swell_path::{Discipline, LinkConfig, Loss};
use swell_tcp::{Algorithm, Config};
use swell_traffic::Schedule;
use swell_workload::{
    Access, Law, Parametric, ParametricConfig, Structural, Transport, Web, WebConfig, Workload,
};

use crate::backend::{BackgroundSpec, ForegroundSpec, Process, RunError, RunSpec};
use crate::file::{self, CongestionControl, ConnectionUse, QdiscKind, TcpProfile, TcpSettings};

type Machine = (Box<dyn Workload>, Arc<Config>);

/// One direction of the bottleneck.
pub(super) fn link(link: file::Link) -> LinkConfig {
    LinkConfig {
        rate: Some(link.rate),
        delay: link.delay,
        discipline: match link.qdisc {
            QdiscKind::Fifo => Discipline::Fifo,
        },
        queue: link.queue,
        overhead: u16::try_from(link.overhead.0).unwrap_or(u16::MAX),
        loss: match link.loss {
            file::Loss::None => Loss::None,
            file::Loss::Independent { p } => Loss::Independent { p },
            file::Loss::GilbertElliott {
                p_bad,
                p_good,
                loss_bad,
                loss_good,
            } => Loss::GilbertElliott {
                to_bad: p_bad,
                to_good: p_good,
                loss_good,
                loss_bad,
            },
        },
    }
}

/// The transport that a file asks for.
pub(super) fn tcp(settings: &TcpSettings) -> Arc<Config> {
    let mut config = match settings.profile {
        TcpProfile::Linux => Config::linux(),
        TcpProfile::Classic => Config::classic(),
    };
    if let Some(congestion) = settings.congestion {
        config.algorithm = match congestion {
            CongestionControl::Cubic => Algorithm::Cubic,
            CongestionControl::Newreno => Algorithm::NewReno,
            CongestionControl::Reno => Algorithm::Reno,
        };
    }
    let bytes = |b: Bytes| u32::try_from(b.0).unwrap_or(u32::MAX);
    let set = |to: &mut u32, from: Option<u32>| *to = from.unwrap_or(*to);
    set(&mut config.initial_window, settings.initial_window);
    set(&mut config.mss, settings.mss.map(bytes));
    set(&mut config.recv_buffer, settings.receive_window.map(bytes));
    config.min_rto = settings.min_rto.unwrap_or(config.min_rto);
    config.delayed_ack = settings.delayed_ack.unwrap_or(config.delayed_ack);
    config.sack = settings.sack.unwrap_or(config.sack);
    // RACK needs SACK (RFC 8985 section 3).
    config.rack_tlp &= config.sack;
    Arc::new(config)
}

pub(super) fn foreground(spec: &ForegroundSpec, start: Dur) -> Machine {
    let ForegroundSpec::Web { web, delay } = spec;
    let access = Access {
        delay: *delay,
        ..Access::default()
    };
    let config = WebConfig {
        clients: web.clients,
        objects: web.object.sizes().to_vec(),
        request: web.request,
        server_think: Dur::ZERO,
        think: web.think,
        keep: web.connection == ConnectionUse::Kept,
        count: web.count.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
        start,
        client: access,
        server: access,
    };
    (Box::new(Web::new(config)), tcp(&web.tcp))
}

pub(super) fn background(
    spec: &BackgroundSpec,
    duration: Dur,
    seed: u64,
) -> Result<Option<Machine>, RunError> {
    Ok(match spec {
        BackgroundSpec::None => None,
        BackgroundSpec::Parametric {
            process,
            transport,
            sources,
            packet,
            rates,
            delay,
            tcp: settings,
        } => {
            let access = Access {
                delay: *delay,
                ..Access::default()
            };
            let config = ParametricConfig {
                law: match process {
                    Process::Cbr => Law::Constant,
                    Process::Poisson => Law::Poisson,
                },
                transport: match transport {
                    file::Transport::Udp => Transport::Udp,
                    file::Transport::Tcp => Transport::Tcp,
                },
                packet: u32::try_from(packet.0).unwrap_or(u32::MAX),
                rate: *rates,
                sources: *sources,
                left: access,
                right: access,
            };
            Some((Box::new(Parametric::new(config, seed)), tcp(settings)))
        }
        BackgroundSpec::Learnt {
            model,
            knobs,
            tcp: settings,
        } => {
            let played = model.varied(knobs, seed);
            let schedule = Schedule::draw(&played, knobs, seed, duration)
                .map_err(|e| RunError::Failed(e.into()))?;
            let machine = Structural::new(Arc::new(played), &schedule, seed);
            Some((Box::new(machine), tcp(settings)))
        }
    })
}

/// Doubts that the run's own description raises.
pub(super) fn doubts(spec: &RunSpec) -> Vec<Warning> {
    let BackgroundSpec::Learnt { model, knobs, .. } = &spec.background else {
        return Vec::new();
    };
    let mut doubts = Vec::new();
    let name = &spec.cell.background;
    let warm_up = model.varied(knobs, spec.cell.seed).warm_up();
    if spec.warmup < warm_up {
        doubts.push(Warning::warning(
            "short-warm-up",
            format!(
                "background `{name}` needs about {:.0} s from an empty link to its full load; the warm-up is {}",
                warm_up.as_secs_f64(),
                spec.warmup
            ),
        ));
    }
    if spec.duration > model.duration {
        doubts.push(Warning::note(
            "model-repeats",
            format!(
                "a run of {} is longer than the {:.0} s behind background `{name}`: its sessions come again, in another order",
                spec.duration,
                model.duration.as_secs_f64()
            ),
        ));
    }
    doubts
}
