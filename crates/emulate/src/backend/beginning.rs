//! The world of a run when its clock starts.

use swell_base::Time;
use swell_experiment::RunSpec;
use swell_experiment::backend::RunError;
use swell_experiment::file::Stack;
use swell_experiment::stage::{self, RunParts};
use swell_world::{Hop, PathId, World};

/// Whether a run's background uses kernel sockets, outside the world.
fn real(spec: &RunSpec) -> Result<bool, RunError> {
    Ok(spec.background_stack != Stack::Simulated && stage::background(spec)?.is_some())
}

/// The paths of a run between hosts with ports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ways {
    pub foreground: PathId,
    /// The path of a background over kernel sockets.
    pub background: PathId,
}

/// The world of a run when its clock starts. A replay starts from the same world. Foreground packets enter by ports.
pub(super) fn beginning(spec: &RunSpec) -> Result<(World, RunParts, Ways), RunError> {
    let real = real(spec)?;
    let (mut world, mut run_parts) = RunParts::new(&RunSpec {
        packets: None,
        foreground: None,
        background: if real {
            Vec::new()
        } else {
            spec.background.clone()
        },
        ..spec.clone()
    })?;
    let mut path = |hops: &[Hop]| {
        let path = world.add_path(hops);
        path.ok_or_else(|| RunError::Failed("a path that is none".into()))
    };
    let foreground = path(&spec.foreground_path())?;
    let background = match spec.background.first() {
        Some(part) if real => path(&part.path)?,
        _ => foreground,
    };
    let ways = Ways {
        foreground,
        background,
    };
    // A background over kernel sockets warms up in real time, a simulated one as fast as possible.
    if !real {
        world.advance(Time::ZERO + spec.warmup);
        run_parts.warmed_up(&world);
    }
    Ok((world, run_parts, ways))
}
