//! Files whose mistakes are in how their parts go together.

use super::*;

fn keyed(text: &str) -> Vec<(String, String)> {
    let problems = read(text, "x.toml").expect_err("a mistake").problems;
    let each = problems.into_iter().map(|p| (p.key, p.message));
    each.collect()
}

fn mix(name: &str, of: &[String]) -> String {
    format!("[[background]]\nname = \"{name}\"\nkind = \"mix\"\nof = {of:?}\n")
}

const BEGIN: &str = "name = \"x\"\n[network]\nrate = \"20Mbit\"\n\
                     [[foreground]]\nname = \"f\"\nkind = \"web\"\nobject = \"1MB\"\n";

/// The rate of a part of a mix would follow from the rate of the mix.
#[test]
fn a_background_does_not_match_what_contains_it() {
    let cbr =
        |rate: &str| format!("[[background]]\nname = \"cbr\"\nkind = \"cbr\"\nrate = \"{rate}\"\n");
    let greedy = "[[background]]\nname = \"g\"\nkind = \"greedy\"\n";
    let of = |names: &[&str]| -> Vec<String> { names.iter().map(|n| n.to_string()).collect() };
    let direct = format!(
        "{BEGIN}{}{greedy}{}",
        cbr("match:m"),
        mix("m", &of(&["cbr", "g"]))
    );
    let nested = format!("{direct}{}", mix("outer", &of(&["m"]))).replace("match:m", "match:outer");
    for (text, target) in [(direct, "m"), (nested, "outer")] {
        let found = keyed(&text);
        let message = format!("`{target}` contains `cbr`, whose rate it would decide");
        assert_eq!(found, [("background[0].rate".to_owned(), message)]);
    }
    // It may match a mix without it.
    let other = format!("{BEGIN}{}{greedy}{}", cbr("match:m"), mix("m", &of(&["g"])));
    read(&other, "x.toml").unwrap();
}

/// A foreground is measured in what its windows have after the warm-up.
#[test]
fn a_window_reaches_beyond_the_warm_up_and_has_time_for_what_is_watched() {
    let of = |kind: &str, active: &str| {
        let run = "[run]\nwarmup = \"5s\"\nduration = \"100s\"\n";
        let none = "[[background]]\nname = \"none\"\nkind = \"none\"\n";
        let begin = BEGIN.replace("kind = \"web\"\nobject = \"1MB\"", kind);
        format!("{begin}active = {{ {active} }}\n{none}{run}")
    };
    let (web, stream) = (
        "kind = \"web\"\nobject = \"1MB\"",
        "kind = \"stream\"\nlength = \"30s\"",
    );
    for (kind, active, key) in [
        (web, "on = \"5s\"", "foreground[0].active"),
        (stream, "from = \"80s\"", "foreground[0].length"),
        (stream, "on = \"40s\"", "foreground[0].length"),
    ] {
        let found = keyed(&of(kind, active));
        let keys: Vec<&str> = found.iter().map(|f| &*f.0).collect();
        assert_eq!(keys, [key], "{active}");
    }
    for (kind, active) in [
        (web, "on = \"5001ms\""),
        (web, "on = \"5s\", off = \"5s\""),
        (stream, "from = \"10s\""),
        (stream, "on = \"40s\", off = \"5s\""),
    ] {
        read(&of(kind, active), "x.toml").unwrap_or_else(|e| panic!("{active}: {e}"));
    }
}

/// Each level contains all levels below, so there are 2^60 ways from the top to the bottom.
#[test]
fn nested_mixes_are_visited_once() {
    let mut text = format!("{BEGIN}[[background]]\nname = \"m0\"\nkind = \"greedy\"\n");
    for level in 1..60 {
        let below: Vec<String> = (0..level).map(|i| format!("m{i}")).collect();
        text += &mix(&format!("m{level}"), &below);
    }
    let found = keyed(&text);
    // Each name is told once of each mix.
    let mut twice = found.clone();
    twice.dedup();
    assert_eq!(found.len(), twice.len());
    let last: Vec<_> = found
        .iter()
        .filter(|f| f.0 == "background[59].of")
        .collect();
    assert_eq!(last.len(), 58, "{last:?}");
    assert!(last.iter().all(|f| f.1.ends_with("more than once")));
}

#[test]
fn the_links_of_a_leaf_spine_are_no_path_together() {
    let network = "rate = \"20Mbit\"\npreset = \"leaf-spine\"";
    let text = BEGIN.replace("rate = \"20Mbit\"", network);
    let path = "path = [\"leaf1-spine1\", \"leaf2-spine1 reversed\"]\n";
    let greedy = "[[background]]\nname = \"g\"\nkind = \"greedy\"\n";
    let keys: Vec<String> = keyed(&format!("{text}{greedy}"))
        .into_iter()
        .map(|f| f.0)
        .collect();
    assert_eq!(keys, ["foreground[0].path", "background[0].path"]);
    read(&format!("{text}{path}{greedy}{path}"), "x.toml").unwrap();
    // All links of a chain are a path.
    let chain = format!("{text}{greedy}").replace("leaf-spine", "parking-lot");
    read(&chain, "x.toml").unwrap();
}

#[test]
fn an_exporter_that_sees_nothing_is_refused() {
    for (own, key) in [
        ("sample = 0", "sample"),
        ("active = \"0s\"", "active"),
        ("inactive = \"999us\"", "inactive"),
    ] {
        let greedy = "[[background]]\nname = \"g\"\nkind = \"greedy\"\n";
        let kept = format!("{BEGIN}{greedy}[run.keep]\nrecords = {{ {own} }}\n");
        assert_eq!(keyed(&kept)[0].0, format!("run.keep.records.{key}"));
        let imitation = format!(
            "{BEGIN}{greedy}[[background]]\nname = \"i\"\nkind = \"imitation\"\nof = \"g\"\nrecords = {{ {own} }}\n"
        );
        assert_eq!(
            keyed(&imitation)[0].0,
            format!("background[1].records.{key}")
        );
    }
}

/// A discipline that manages its queue has every packet in it, on an idle link, too.
#[test]
fn a_managed_queue_holds_a_full_packet() {
    let of = |link: &str| {
        let text = BEGIN.replace("rate = \"20Mbit\"", link);
        format!("{text}[[background]]\nname = \"none\"\nkind = \"none\"\n")
    };
    for kind in ["red", "codel", "fq-codel", "pie", "choke"] {
        // 5 ms at 2 Mbit/s are 1250 bytes.
        for (queue, good) in [
            ("5ms", false),
            ("1499B", false),
            ("6ms", true),
            ("1500B", true),
            ("1pkt", true),
        ] {
            let link = format!("rate = \"2Mbit\"\nqueue = \"{queue}\"\nqdisc = \"{kind}\"");
            match good {
                true => drop(read(&of(&link), "x.toml").unwrap()),
                false => {
                    let found = keyed(&of(&link));
                    assert_eq!(found.len(), 1, "{found:?}");
                    assert_eq!(found[0].0, "network.queue");
                    assert!(found[0].1.contains("1.5kB would be dropped"), "{found:?}");
                }
            }
        }
    }
    // A direction's own rate decides.
    let up = "rate = \"20Mbit\"\nqueue = \"5ms\"\nqdisc = \"pie\"\nup = { rate = \"2Mbit\" }";
    assert_eq!(keyed(&of(up)).len(), 1);
    // A first-in, first-out queue is empty while the link is idle.
    read(&of("rate = \"2Mbit\"\nqueue = \"5ms\""), "x.toml").unwrap();
    // A change of the queue, or of the discipline.
    for (change, key) in [
        ("queue = \"1kB\"\nqdisc = \"codel\"", "queue"),
        ("qdisc = \"codel\"", "qdisc"),
        (
            "queue = \"5ms\"\nqdisc = \"codel\"\nrate = \"2Mbit\"",
            "queue",
        ),
    ] {
        let link = format!(
            "rate = \"20Mbit\"\nqueue = \"1kB\"\n[[network.change]]\nat = \"1s\"\n{change}"
        );
        let found = keyed(&of(&link));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, format!("network.change[0].{key}"));
    }
}

/// A link has a single tap. Round trips and gaps are seen at the hosts.
#[test]
fn tables_of_the_same_tap_are_not_kept_together() {
    let greedy = "[[background]]\nname = \"g\"\nkind = \"greedy\"\n";
    let text = |keep: &str| format!("{BEGIN}{greedy}[run.keep]\n{}\n", keep.replace("; ", "\n"));
    let found = keyed(&text("packets = true; records = {}"));
    assert!(found.iter().any(|f| f.0 == "run.keep.records"), "{found:?}");
    for keep in ["packets = true", "records = {}", "waterfall = true"] {
        read(
            &text(&format!("rtts = true; gaps = true; {keep}")),
            "x.toml",
        )
        .unwrap();
    }
}

#[test]
fn all_mistakes_are_told_at_once_in_the_order_of_lines() {
    let text = GOOD
        .replace("rate = \"20Mbit\"", "raet = \"20Mbit\"")
        .replace("replications", "replication")
        .replace("kind = \"poisson\"", "kind = \"poison\"");
    let problems = read(&text, "x.toml").unwrap_err().problems;
    let lines: Vec<usize> = problems.iter().map(|p| p.line).collect();
    assert_eq!(lines, [4, 23, 26]);
}
