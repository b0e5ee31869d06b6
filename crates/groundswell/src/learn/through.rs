//! Learns from two taps of one path: the traffic that passes both, and that of each.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use swell_base::{Dur, Rate};
use swell_capture::Packet;
use swell_learn::taps::{Clocks, Links, MOST_FLOWS, Matcher, NoMatch, Parted, Split, Traffic};
use swell_traffic::Model;

use super::counts::FileCounts;
use super::options::{Options, file_name, provenance, stem};
use super::packets;
use super::source::{Opened, Progress};
use crate::Error;

/// What two captures became.
#[derive(Clone, Debug)]
pub struct Through {
    /// Models of through traffic and of the cross traffic of each tap ([`Traffic`]); `None` where there is nothing to
    /// model. There is always through traffic.
    pub models: [Option<Model>; 3],
    /// What was read from each file.
    pub files: Vec<FileCounts>,
    /// Number of flows that pass both taps.
    pub flows: u64,
    /// How long both taps recorded.
    pub duration: Dur,
    /// Clocks of the taps.
    pub clocks: Clocks,
    /// What both links carried in this time.
    pub links: Links,
    /// Whether the clients of the second tap are at the other end of the path.
    turned: bool,
}

/// Learns three models from the captures of two taps of one path, made at the same time, the tap nearer to the inside
/// first. Both are read twice. `progress` gets the number of bytes just read.
///
/// # Errors
/// If a capture cannot be read or is standard input, or no flow passes both taps at the same time and in this order.
pub fn through(
    captures: &[PathBuf; 2],
    options: &Options,
    progress: impl Fn(u64) + Send + Sync + 'static,
) -> Result<Through, Error> {
    let progress: Progress = Arc::new(progress);
    if captures.iter().any(|path| path.as_os_str() == "-") {
        return Err(
            Error::usage("--through reads each capture twice, which - cannot be")
                .hint("write it to a file"),
        );
    }
    let each = |tap: usize, push: &mut dyn FnMut(&Packet)| {
        let file = Opened::new(&captures[tap], &progress)?;
        packets::read(file, false, |p| {
            push(p);
            Ok(())
        })
    };
    let mut matcher = Matcher::new(&options.packets.inside, MOST_FLOWS);
    each(0, &mut |p| matcher.first(p))?;
    each(1, &mut |p| matcher.second(p))?;
    let matched = matcher.finish().map_err(|e| refused(e, captures))?;
    let name = options.name.clone().unwrap_or_else(|| stem(&captures[0]));
    let own = swell_learn::Options {
        name,
        provenance: provenance(&[], &options.note),
        ..options.packets.clone()
    };
    let sources = captures.each_ref().map(|path| file_name(path));
    let mut split = Split::new(matched, &own, &sources);
    let first = each(0, &mut |p| split.first(p))?;
    let second = each(1, &mut |p| split.second(p))?;
    let mut digests = Vec::new();
    let mut files = Vec::new();
    for (tap, read) in [first, second].into_iter().enumerate() {
        read.doubts.iter().for_each(|d| split.doubt(tap, d));
        digests.push(read.source.digest().map_err(Error::failed)?);
        files.push(read.counts);
    }
    let (flows, duration) = (split.matched().flows(), split.matched().duration());
    let clocks = split.matched().clocks;
    let Parted {
        mut models,
        turned,
        links,
    } = split.finish();
    if models[Traffic::Through as usize].is_none() {
        let message = format!(
            "{flows} flows pass both taps, but none of them is a TCP connection or a UDP flow that can be modelled"
        );
        return Err(Error::usage(message));
    }
    if options.digest {
        for (traffic, model) in Traffic::ALL.into_iter().zip(&mut models) {
            let read = match traffic {
                Traffic::Through => &digests[..],
                Traffic::First => &digests[..1],
                Traffic::Second => &digests[1..],
            };
            if let Some(model) = model {
                model.provenance.digests = read.to_vec();
            }
        }
    }
    Ok(Through {
        models,
        files,
        flows,
        duration,
        clocks,
        links,
        turned,
    })
}

/// The error that two captures do not match, with what helps.
fn refused(why: NoMatch, captures: &[PathBuf; 2]) -> Error {
    let [first, second] = captures.each_ref().map(|path| path.display());
    let hint = match why {
        NoMatch::NoFlow { translated: 0 } => format!(
            "are {first} and {second} of one path, and of the same time? Behind a NAT, or in a tunnel, packets have other \
             addresses: capture both on one side of it"
        ),
        NoMatch::NoFlow { .. } => "capture both on one side of the NAT".to_owned(),
        NoMatch::Apart => format!(
            "mergecap joins the pieces of one tap's capture; {first} and {second} must overlap"
        ),
        NoMatch::Order(_) => format!(
            "name the tap nearer to the inside first: {second}, then {first}; --inside says which networks are inside"
        ),
    };
    Error::usage(why).hint(hint)
}

impl Through {
    /// The models there are, with the names of their files without an ending.
    pub fn models(&self) -> impl Iterator<Item = (Traffic, &Model)> {
        let all = Traffic::ALL.into_iter().zip(&self.models);
        all.filter_map(|(traffic, model)| Some((traffic, model.as_ref()?)))
    }

    /// An experiment (TOML) over two links with these models, whose files are `NAME.json.zst` beside it.
    pub fn experiment(&self, name: &str) -> String {
        let lag = self.clocks.lag.map_or(0, |lag| lag.max(0)).unsigned_abs();
        let lag = Dur::from_micros(lag / 1000);
        let rates = self.links.busiest.map(|bytes| usual(8.0 * bytes));
        let mut text = format!(
            "# What two taps of one path saw, over two links. The taps do not tell the rates of the links: these are the next\n\
             # usual ones above the busiest 100 ms. Set yours. The delay between the taps is that of the links: of the first\n\
             # on the way out, of the second on the way back, so that packets reach the queues as they passed the taps.\n\
             name = \"{name}\"\n\n[network]\n"
        );
        let delays = [[lag, Dur::ZERO], [Dur::ZERO, lag]];
        for ((link, rate), [up, down]) in ["first", "second"].into_iter().zip(rates).zip(delays) {
            text += &format!(
                "\n[[links]]\nname = \"{link}\"\nrate = \"{rate}\"\nup = {{ delay = \"{up}\" }}\ndown = {{ delay = \"{down}\" }}\n"
            );
        }
        text += "\n# What the traffic does to an application. Write yours.\n[[foreground]]\nname = \"page\"\nkind = \"web\"\n\
                 object = \"100kB\"\n\n[[background]]\nname = \"none\"\nkind = \"none\"\n";
        let mut parts = Vec::new();
        for (traffic, _) in self.models() {
            let (what, part, path) = match traffic {
                Traffic::Through => ("What passes both links.", "through", ""),
                Traffic::First => ("What crosses the first link only.", "cross-first", "first"),
                Traffic::Second => (
                    "What crosses the second link only.",
                    "cross-second",
                    "second",
                ),
            };
            text += &format!(
                "\n# {what}\n[[background]]\nname = \"{part}\"\nkind = \"learnt\"\nmodel = \"{}.json.zst\"\n",
                traffic.name()
            );
            if !path.is_empty() {
                text += &format!("path = [\"{path}\"]\n");
            }
            if traffic == Traffic::Second && self.turned {
                text += "reversed = true\n";
            }
            parts.push(format!("\"{part}\""));
        }
        if parts.len() > 1 {
            text += &format!(
                "\n# All at once, as the taps saw it.\n[[background]]\nname = \"all\"\nkind = \"mix\"\nof = [{}]\n",
                parts.join(", ")
            );
        }
        text + "\n[run]\nreplications = 5\nwarmup = \"10s\"\nduration = \"70s\"\n"
    }

    /// The name of an experiment in this directory.
    pub fn name(dir: &Path) -> String {
        let name = stem(dir);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        name.chars()
            .map(|c| if plain(c) { c } else { '-' })
            .collect()
    }
}

/// The smallest of the rates 1, 2, 5, 10, … Mbit/s that is no less.
fn usual(bps: f64) -> Rate {
    let mut decade = 1_000_000;
    loop {
        for step in [1, 2, 5] {
            let rate = step * decade;
            if rate as f64 >= bps || rate >= 500_000_000_000 {
                return Rate::from_bps(rate);
            }
        }
        decade *= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_usual_ones() {
        for (bps, mbit) in [
            (0.0, 1),
            (1e6, 1),
            (1.1e6, 2),
            (3e6, 5),
            (9.9e6, 10),
            (2.1e9, 5000),
        ] {
            assert_eq!(usual(bps), Rate::from_bps(mbit * 1_000_000), "{bps}");
        }
        assert_eq!(usual(f64::INFINITY), Rate::from_bps(500_000_000_000));
    }

    #[test]
    fn names_of_experiments_are_plain() {
        assert_eq!(Through::name(Path::new("runs/our path.2026")), "our-path");
    }
}
