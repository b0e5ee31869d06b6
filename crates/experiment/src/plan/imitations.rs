//! Imitations: backgrounds that are learnt from the flow records of another background, or replay its packets.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use swell_base::{Dur, Packet, Time};
use swell_world::{Parties, Tap};

use super::{Capture, Plan, Traces};
use crate::backend::{Backend as _, RunSpec};
use crate::file::Background;
use crate::hash::Hash;
use crate::kinds::{Input, Part, Seen, Source};
use crate::simulate::Simulator;
use crate::simulate::stage::RunParts;

/// A problem with an imitation: its index in the file, and the reason.
type Wrong = (usize, String);

/// Maximum number of packets of a replayed background in one direction, 16 bytes each.
const PACKETS: usize = 20_000_000;

impl Plan {
    /// Checks that every imitated background can be imitated.
    pub(super) fn check_imitations(&self) -> Result<(), Wrong> {
        for (i, part) in self.file.background.iter().enumerate() {
            if let Some((of, _)) = part.keys().imitates() {
                self.original(of).map_err(|why| (i, why))?;
            }
        }
        Ok(())
    }

    /// Simulates the backgrounds that `wanted` backgrounds imitate, and learns from their traffic.
    pub(super) fn imitate(
        &mut self,
        known: &Traces,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(), Wrong> {
        let all = self.file.background.clone();
        for (i, part) in all.iter().enumerate().filter(|(_, p)| wanted(p.name())) {
            if let Some((of, source)) = part.keys().imitates() {
                let original = self.original(of).map_err(|why| (i, why))?;
                let key = key(self, original, part);
                let path = PathBuf::from(format!("imitation {key}"));
                let learnt = known.model(path, || learnt(self, original, part, source, key));
                let input = learnt.map_err(|why| (i, why))?;
                self.inputs.insert(part.name().to_owned(), input);
            }
        }
        Ok(())
    }

    /// The background with this name, if it can be simulated alone.
    fn original(&self, of: &str) -> Result<&Background, String> {
        let all = &self.file.background;
        let Some(original) = all.iter().find(|b| b.name() == of) else {
            return Err(format!("no background is called `{of}`"));
        };
        let keys = original.keys();
        if !keys.parts().is_empty() {
            return Err(format!(
                "`{of}` is a mix, and only one background by itself is imitated: name one of its parts, or imitate each and mix those"
            ));
        }
        let simple = keys.imitates().is_none() && !original.is_none();
        match simple && original.matches().is_none() {
            true => Ok(original),
            false => Err(format!(
                "`{of}` is not imitated: it sends nothing, or follows from other backgrounds"
            )),
        }
    }
}

/// A hash of everything that the model of an imitation depends on.
fn key(plan: &Plan, original: &Background, part: &Part) -> String {
    let mut file = plan.file.clone();
    file.foreground.clear();
    file.background = vec![original.clone(), Background(part.clone())];
    let input = plan.inputs.get(original.name());
    let hash = Hash::new()
        .part(file.to_toml().as_bytes())
        .part(plan.rtt().to_string().as_bytes())
        .part(input.map_or("", |i| &i.facts.hash).as_bytes());
    hash.hex()
}

fn learnt(
    plan: &Plan,
    original: &Part,
    part: &Part,
    source: Source<'_>,
    hash: String,
) -> Result<Input, String> {
    // Scale to the rate predicted by the model, because the carried rate has not been measured yet.
    let none = BTreeMap::new();
    let mut spec = plan.alone(original, 0, plan.first_pace(original, &none), &none);
    // What it sends in windows is imitated with its windows.
    spec.background
        .iter_mut()
        .for_each(|own| own.active = original.active());
    let path = spec.background.first().map(|own| own.path.clone());
    let path = path.ok_or("it sends nothing")?;
    let [_, down] = spec.narrowest(&path);
    let mut input = match source {
        Source::Records(exporter) => {
            spec.keep.records = Some(exporter.clone());
            let run = Simulator.run(&spec, &|_| {}, &|| false);
            let run = run.map_err(|e| e.to_string())?;
            // Use a single link, the slowest one downstream, so that there is one record of each flow.
            let mut exported = run.exported.iter();
            let exported = exported.find(|seen| seen.link == spec.links[down.link].name);
            let exported = exported.ok_or("nothing was exported")?;
            part.keys().learn(Seen::Records(exported))
        }
        Source::Packets => {
            let mut capture = captured(&spec, down.link, PACKETS)?;
            // Packets keep their direction on the link, which the path of the replay may cross from right to left.
            // A link that only the original crosses is as its path has it.
            let own = plan.file.hops(&part.route());
            let hop = own.iter().chain(&path).find(|hop| hop.link == down.link);
            if hop.is_some_and(|hop| hop.reversed) {
                capture.packets.swap(0, 1);
            }
            part.keys().learn(Seen::Packets(capture))
        }
    }?;
    input.facts.hash = hash;
    Ok(input)
}

/// The packets of a run that arrive at this link after the warm-up, at most `most` in each direction.
fn captured(spec: &RunSpec, link: usize, most: usize) -> Result<Capture, String> {
    let arrivals = Arrivals {
        from: Time::ZERO + spec.warmup,
        ways: Arc::default(),
    };
    let tap = Box::new(arrivals.clone());
    let (mut world, _) = RunParts::watched(spec, Some((link, tap))).map_err(|e| e.to_string())?;
    // Advance in steps, because the world buffers the observations of a step until it passes them to the tap.
    let mut now = Dur::ZERO;
    while now < spec.duration {
        now = (now + Dur::from_secs(1)).min(spec.duration);
        world.advance(Time::ZERO + now);
        let ways = arrivals.ways.lock().unwrap_or_else(PoisonError::into_inner);
        if ways.iter().any(|way| way.len() > most) {
            return Err(format!(
                "`{}` sends more than the {most} packets in one direction that can be replayed: a shorter run or a lower rate is possible",
                spec.cell.background
            ));
        }
    }
    let mut ways = arrivals.ways.lock().unwrap_or_else(PoisonError::into_inner);
    let arrived = std::mem::take(&mut *ways);
    let length = spec.duration.saturating_sub(spec.warmup);
    Ok(Capture {
        packets: arrived.map(Into::into),
        length,
        period: length,
        doubts: Vec::new(),
        hash: String::new(),
    })
}

/// Arrival times since the end of the warm-up and sizes of packets, up and down.
type Ways = [Vec<(Dur, u32)>; 2];

/// Records the arrivals at a link after the warm-up. Clones share their state.
#[derive(Clone)]
struct Arrivals {
    /// End of the warm-up.
    from: Time,
    ways: Arc<Mutex<Ways>>,
}

impl Tap for Arrivals {
    fn packet(&mut self, _: Time, _: &Parties, _: bool, _: &Packet) {}

    fn arrival(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        if at < self.from {
            return;
        }
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        ways[parties.direction(to_server)].push((at.since(self.from), u32::from(packet.size)));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A replay holds its packets in memory.
    #[test]
    fn more_packets_than_can_be_replayed_are_refused() {
        let text = "name = \"x\"\n[network]\nrate = \"10Mbit\"\n[[foreground]]\nname = \"f\"\nkind = \"none\"\n\
                    [[background]]\nname = \"c\"\nkind = \"cbr\"\nrate = \"1200kbit\"\npacket = \"1500B\"\n\
                    [run]\nwarmup = \"2s\"\nduration = \"4s\"\n";
        let plan =
            Plan::outline(text, "x", Path::new(""), &Traces::default()).expect("a good file");
        let spec = plan.alone(&plan.file.background[0], 0, None, &BTreeMap::new());
        let captured = |most| captured(&spec, 0, most).map(|capture| capture.packets[1].len());
        // Of a packet every 10 ms, those of the warm-up are not held.
        let held = captured(PACKETS).expect("a capture");
        assert!((199..=201).contains(&held), "{held}");
        assert_eq!(captured(held), Ok(held));
        let refused = captured(held - 1).expect_err("a packet too many");
        assert!(refused.contains("`c` sends more than the"), "{refused}");
    }
}
