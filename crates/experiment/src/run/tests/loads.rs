//! Loads that a calibration cannot reach, or that are not what was asked for.

use super::*;
use crate::simulate::Simulator;

/// The experiment with these backgrounds on top, and one replication.
fn with(more: &str) -> String {
    experiment(1).replace("[run]\n", &format!("{more}\n[run]\n"))
}

/// The manifest of simulated runs.
fn simulated(text: &str) -> Manifest {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, text);
    let options = options(&scratch, "r", 2);
    match run(&plan, &Simulator, &options, &|_| {}, &|| false) {
        Ok(Ended::Complete(results)) => results.manifest.clone(),
        other => panic!("{other:?}"),
    }
}

/// The messages of the warnings with this code.
fn said<'m>(manifest: &'m Manifest, code: &str) -> Vec<&'m str> {
    let warnings = manifest.warnings.iter().filter(|w| w.code == code);
    warnings.map(|w| &*w.message).collect()
}

/// The rates of the parts are known only when they are measured.
#[test]
fn a_mix_of_packets_that_overloads_the_link_is_doubted() {
    let base = "[[background]]\nname = \"base\"\nkind = \"cbr\"\nrate = \"8Mbit\"\n";
    let packets = |name: &str| {
        format!("[[background]]\nname = \"{name}\"\nkind = \"cbr\"\nrate = \"match:base\"\n")
    };
    let mix = "[[background]]\nname = \"mix\"\nkind = \"mix\"\nof = [\"a\", \"b\", \"c\"]";
    let all = ["a", "b", "c"].map(packets).concat();
    let manifest = simulated(&with(&format!("{base}{all}{mix}")));
    let doubts = said(&manifest, "open-loop-loss");
    assert_eq!(doubts.len(), 1, "{:?}", manifest.warnings);
    assert!(
        doubts[0].contains("background mix") && doubts[0].contains("most of it does not slow down"),
        "{doubts:?}"
    );
    // Endless transfers lose packets because they fill the link, with or without a few datagrams.
    let greedy = "[[background]]\nname = \"c\"\nkind = \"greedy\"\n";
    let few = "[[background]]\nname = \"a\"\nkind = \"cbr\"\nrate = \"1Mbit\"\n";
    let of_two = mix.replace("\"b\", ", "");
    let other = simulated(&with(&format!("{few}{greedy}{of_two}")));
    assert_eq!(said(&other, "open-loop-loss"), Vec::<&str>::new());
    assert!(other.measured.contains_key("mix"));
}
