//! Command-line arguments for emulated runs.

use clap::{Args, ValueEnum};
use swell_base::Dur;
use swell_emulate::Pace;
use swell_emulate::backend::Settings;
use swell_host::Offload;

#[derive(Debug, Args)]
pub(crate) struct EmulationArgs {
    /// Be punctual to microseconds, at the price of a busier processor.
    #[arg(long, conflicts_with = "coalesce")]
    precise: bool,
    /// Let packets wait for one another, at most for this long (1ms), as network cards do: less exact,
    /// and cheaper where there are many.
    #[arg(long, value_name = "TIME", value_parser = rest)]
    coalesce: Option<Dur>,
    /// What the kernels of the hosts leave to their devices. Without offload every packet costs them 2 to
    /// 3 us; with it the network still sees packets of its MTU at their own times, unless they pass.
    #[arg(long, value_name = "WHAT", default_value = "segment")]
    offload: Offloading,
    /// Let time pass more slowly by this factor: rates are divided by it, delays multiplied.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", value_parser = stretch)]
    stretch: f64,
    /// Repeat a run that was too late with time stretched, at most by this factor.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", value_parser = stretch)]
    stretch_to: f64,
    /// Keep a journal of arrivals, by which `swell replay` repeats the run in virtual time.
    #[arg(long)]
    pub record: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Offloading {
    /// Kernels hand over up to 64 KiB at once, cut into packets of the wire before the network sees them.
    Segment,
    /// Those are not cut: the cheapest, and the network sees one packet for 45.
    Pass,
    /// Kernels cut and sum themselves: the dearest, and as exact as the first.
    Off,
}

impl EmulationArgs {
    /// An option that differs from its default.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let all = [
            ("--precise", self.precise),
            ("--coalesce", self.coalesce.is_some()),
            ("--offload", !matches!(self.offload, Offloading::Segment)),
            ("--stretch", self.stretch != 1.0),
            ("--stretch-to", self.stretch_to != 1.0),
            ("--record", self.record),
        ];
        all.into_iter()
            .find(|(_, given)| *given)
            .map(|(name, _)| name)
    }

    /// The settings for the emulator.
    pub(crate) fn settings(&self) -> Settings {
        let prompt = if self.precise {
            Pace::Precise
        } else {
            Pace::Prompt
        };
        Settings {
            pace: self.coalesce.map_or(prompt, Pace::Coalesced),
            offload: match self.offload {
                Offloading::Segment => Offload::Segment,
                Offloading::Pass => Offload::Pass,
                Offloading::Off => Offload::Off,
            },
            stretch: self.stretch,
            stretch_to: self.stretch_to,
            repeats: 0,
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

/// Time is stretched by at most this factor: a second takes a quarter of an hour.
const MOST_STRETCH: f64 = 1000.0;

fn stretch(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().ok();
    factor
        .filter(|f| (1.0..=MOST_STRETCH).contains(f))
        .ok_or_else(|| format!("a factor from 1 to {MOST_STRETCH}"))
}

/// Parses a probability, as a share or in percent.
pub(crate) fn probability(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 0.01),
        None => (text, 1.0),
    };
    let p = number.parse::<f64>().map(|n| n * scale);
    p.ok()
        .filter(|p| (0.0..=1.0).contains(p))
        .ok_or_else(|| "a probability is between 0 and 1, or in percent: 0.001, 0.1%".into())
}

#[cfg(test)]
mod tests {
    use super::{probability, rest, stretch};

    #[test]
    fn time_is_only_slowed_down() {
        for (text, factor) in [("1", 1.0), ("2.5", 2.5), ("1e3", 1e3)] {
            assert_eq!(stretch(text), Ok(factor));
        }
        for wrong in ["0", "0.5", "-1", "nan", "inf", "1e9", "", "x"] {
            assert!(stretch(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shares_and_percents() {
        assert_eq!(probability("0.25"), Ok(0.25));
        assert_eq!(probability("25%"), Ok(0.25));
        for wrong in ["1.1", "101%", "-1", "NaN", "", "%", "a lot"] {
            assert!(probability(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn packets_wait_for_one_another_for_a_millisecond_at_most() {
        assert_eq!(rest("1ms").map(|r| r.as_nanos()), Ok(1_000_000));
        assert!(rest("1.1ms").is_err() && rest("5").is_err());
    }
}
