//! How emulated runs are to be made, as it may be typed.

use clap::Args;
use swell_base::Dur;
use swell_live::backend::Settings;
use swell_live::emulate::Pace;

#[derive(Debug, Args)]
pub(crate) struct EmulationArgs {
    /// Be punctual to microseconds, at the price of a busier processor.
    #[arg(long, conflicts_with = "coalesce")]
    precise: bool,
    /// Let packets wait for one another, at most for this long (1ms), as network cards do: less exact,
    /// and cheaper where there are many.
    #[arg(long, value_name = "TIME", value_parser = rest)]
    coalesce: Option<Dur>,
    /// Let time pass more slowly by this factor: rates are divided by it, delays multiplied.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    stretch: f64,
    /// Keep a journal of arrivals, by which `swell replay` repeats the run in virtual time.
    #[arg(long)]
    pub record: bool,
}

impl EmulationArgs {
    /// What the emulator makes of it.
    pub(crate) fn settings(&self) -> Settings {
        let prompt = if self.precise {
            Pace::Precise
        } else {
            Pace::Prompt
        };
        Settings {
            pace: self.coalesce.map_or(prompt, Pace::Coalesced),
            stretch: self.stretch,
            stretch_to: 1.0,
            record: self.record,
            ..Settings::default()
        }
    }
}

fn rest(text: &str) -> Result<Dur, String> {
    let rest: Dur = text
        .parse()
        .map_err(|e: swell_base::UnitError| e.to_string())?;
    if rest > Pace::MOST {
        return Err(format!(
            "at most {}: later, and the run would be marked",
            Pace::MOST
        ));
    }
    Ok(rest)
}
