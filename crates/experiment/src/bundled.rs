//! Files inside the program: traffic models and example experiments.

mod list {
    include!(concat!(env!("OUT_DIR"), "/bundled.rs"));
}

/// Names of the bundled models, sorted.
pub fn models() -> impl Iterator<Item = &'static str> {
    list::MODELS.iter().map(|m| m.0)
}

/// The file of a bundled model.
pub fn model(name: &str) -> Option<&'static [u8]> {
    list::MODELS.iter().find(|m| m.0 == name).map(|m| m.1)
}

/// Names of the bundled flow-level models, sorted. They differ from those of the other bundled models.
pub fn flow_models() -> impl Iterator<Item = &'static str> {
    list::FLOW_MODELS.iter().map(|m| m.0)
}

/// The file of a bundled flow-level model.
pub fn flow_model(name: &str) -> Option<&'static [u8]> {
    list::FLOW_MODELS.iter().find(|m| m.0 == name).map(|m| m.1)
}

/// Names of the bundled experiments, sorted.
pub fn experiments() -> impl Iterator<Item = &'static str> {
    list::EXPERIMENTS.iter().map(|e| e.0)
}

/// The text of a bundled experiment.
pub fn experiment(name: &str) -> Option<&'static str> {
    let (_, bytes) = list::EXPERIMENTS.iter().find(|e| e.0 == name)?;
    std::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_traffic::Model;
    use swell_traffic::flowlevel::{FlowModel, Plan, Playback};

    /// Larger than the others may be: it has the users of 109 captures, and the studies were run with it as it is.
    const LARGE: &str = "access-link";

    #[test]
    fn the_bench_is_wide_small_and_says_where_it_comes_from() {
        let names: Vec<&str> = models().collect();
        let small = names.iter().filter(|n| model(n).unwrap().len() < 200_000);
        assert!(small.count() >= 24, "{names:?}");
        for name in names {
            let file = model(name).unwrap();
            assert!(
                file.len() < 200_000 || name == LARGE,
                "{name}: {} bytes",
                file.len()
            );
            let model = Model::from_slice(file).unwrap();
            assert_eq!(model.name, name);
            let from = &model.provenance;
            assert!(!from.made_by.is_empty() && from.note.len() > 50, "{name}");
            match (&from.certificate, &from.played) {
                // Learnt from packets.
                (Some(_), None) => {
                    assert!(model.totals.bytes.iter().sum::<u64>() > 0, "{name}");
                    assert_eq!(from.sources.len(), 1, "{name}");
                    // Packets of a capture have a digest, and those of a simulation say what they are.
                    let simulated = from.note.starts_with("Simulated, not captured: ");
                    assert_eq!(from.digests.len(), usize::from(!simulated), "{name}");
                }
                // Made of published figures, or of models that were.
                (None, Some(played)) => {
                    assert!(played.rates.iter().all(|r| *r > 0.0), "{name}");
                    assert!(played.energy_slope.is_some(), "{name}");
                    let begins = [
                        "Stand-in for ",
                        "Variant of ",
                        "Made, not measured: ",
                        "Distributions measured at ",
                    ];
                    let says = begins.iter().any(|b| from.note.starts_with(b));
                    assert!(says, "{name}: {}", from.note);
                }
                both => panic!("{name}: {both:?}"),
            }
        }
    }

    #[test]
    fn bundled_flow_level_models_are_small_and_can_be_played() {
        let mut names = flow_models().peekable();
        assert!(names.peek().is_some());
        for name in names {
            assert!(model(name).is_none(), "{name} is two models");
            let file = flow_model(name).unwrap();
            assert!(file.len() < 200_000, "{name}: {} bytes", file.len());
            let model = FlowModel::from_slice(file).unwrap();
            assert_eq!(model.name, name);
            assert!(model.provenance.note.contains("LGPL-3.0"), "{name}");
            let playback = Playback {
                compression: 60.0,
                ..Playback::default()
            };
            let plan = Plan::new(&model, &playback).unwrap();
            let seconds = plan.length().unwrap().as_secs_f64();
            assert!((55.0..65.0).contains(&seconds), "{name}: {seconds} s");
        }
    }
}
