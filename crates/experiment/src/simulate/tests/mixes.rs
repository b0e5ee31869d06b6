//! Several concurrent backgrounds, several concurrent foregrounds, and parts with active windows.

use super::*;
use crate::file::File;
use crate::observe::{Bin, PartTotals};
use crate::run::{self, Options, RunOutcome};
use crate::store::Results;
use swell_base::Direction;

/// An experiment with the foreground `web` and these backgrounds.
fn file(backgrounds: &[&str], run: &str) -> String {
    let backgrounds: String = (backgrounds.iter())
        .map(|b| format!("[[background]]\n{b}\n"))
        .collect();
    format!(
        r#"
name = "mixes"
[network]
rate = "20Mbit"
delay = "10ms"
queue = "50ms"
[[foreground]]
name = "web"
kind = "web"
object = "100kB"
{backgrounds}
[run]
replications = 1
warmup = "2s"
duration = "12s"
{run}
"#
    )
}

const DOWN: &str = "name = \"down\"\nkind = \"cbr\"\nrate = \"5Mbit\"";
const UP: &str = "name = \"up\"\nkind = \"poisson\"\nrate = \"3Mbit\"\nrate_up = \"1Mbit\"";
const BULK: &str = "name = \"bulk\"\nkind = \"greedy\"\nconnections = 3";
const BURSTS: &str = "name = \"bursts\"\nkind = \"on-off\"\nrate = \"2Mbit\"";

/// All observations of a run as text, in which NaN is equal to itself.
fn seen(text: &str, cell: usize) -> String {
    format!("{:?}", run_of(text, cell).1)
}

/// All runs of an experiment, stored in `dir`.
fn results_of(text: &str, dir: &Path) -> Results {
    let plan = Plan::resolve(text, "test.toml", Path::new(".")).expect("a good file");
    let options = Options {
        dir: dir.join("run"),
        threads: 1,
        fresh: true,
        shard: None,
    };
    let ended = run::run(&plan, &Simulator, &options, &|_| {}, &|| false).expect("runs");
    let RunOutcome::Complete(results) = ended else {
        panic!("not interrupted")
    };
    *results
}

#[test]
fn a_mix_of_one_is_that_one() {
    for part in [DOWN, UP, BULK, BURSTS] {
        let name = part.split('"').nth(1).expect("a name");
        let mix = format!("name = \"mix\"\nkind = \"mix\"\nof = [\"{name}\"]");
        let text = file(&[part, &mix], "");
        assert_eq!(seen(&text, 0), seen(&text, 1), "{name}");
    }
}

#[test]
fn the_loads_of_a_mix_add_up_and_are_counted_part_by_part() {
    let mix = "name = \"mix\"\nkind = \"mix\"\nof = [\"down\", \"up\"]";
    let (_, observed) = run_of(&file(&[DOWN, UP, mix], ""), 2);
    let of = |name: &str, direction: Direction| -> PartTotals {
        let rows = observed.parts.iter();
        let mut own = rows.filter(|p| p.part == name && p.direction == direction);
        own.next().cloned().expect("a row")
    };
    for direction in Direction::BOTH {
        let link = &observed.links[direction.index()];
        let parts = [of("down", direction), of("up", direction)];
        let sum: u64 = parts.iter().map(|p| p.arrived).sum();
        // Only one of the two counts includes packets that arrive in the last instant of the warm-up.
        let off = sum.abs_diff(link.arrived[1]);
        assert!(off <= 3_000, "{sum} and {}", link.arrived[1]);
    }
    let bps = |p: &PartTotals| p.arrived as f64 * 8.0 / p.duration;
    assert!((bps(&of("down", Direction::Down)) / 5e6 - 1.0).abs() < 0.01);
    assert!((bps(&of("up", Direction::Down)) / 3e6 - 1.0).abs() < 0.1);
    assert!((bps(&of("up", Direction::Up)) / 1e6 - 1.0).abs() < 0.15);
    assert_eq!(of("down", Direction::Up).arrived, 0);
}

#[test]
fn the_bins_of_the_parts_add_up_to_those_of_the_links() {
    let mix = "name = \"mix\"\nkind = \"mix\"\nof = [\"down\", \"up\", \"bulk\"]";
    let (_, observed) = run_of(&file(&[DOWN, UP, BULK, mix], ""), 3);
    let mut some = [0; 4];
    for bin in &observed.bins {
        let own = observed
            .part_bins
            .iter()
            .filter(|p| p.time == bin.time && p.link == bin.link && p.direction == bin.direction);
        let mut sums = [[0; 2]; 4];
        for part in own {
            let role = usize::from(part.role == "background");
            sums[0][role] += part.arrived;
            sums[1][role] += u64::from(part.arrived_packets);
            sums[2][role] += part.departed;
            sums[3][role] += u64::from(part.dropped);
        }
        let whole = [
            bin.arrived,
            bin.arrived_packets.map(u64::from),
            bin.departed,
            bin.dropped.map(u64::from),
        ];
        assert_eq!(sums, whole, "{} s, {:?}", bin.time, bin.direction);
        for (total, sum) in some.iter_mut().zip(sums) {
            *total += sum[1];
        }
    }
    assert!(some.iter().all(|&n| n > 0), "each is counted: {some:?}");
    let alone = run_of(&file(&[DOWN, UP, BULK, mix], ""), 0).1;
    assert!(alone.part_bins.is_empty() && !alone.bins.is_empty());
}

#[test]
fn the_order_of_a_mix_changes_nothing() {
    let mix = |of: &str| format!("name = \"mix\"\nkind = \"mix\"\nof = [{of}]");
    let one = file(&[&mix("\"up\", \"bulk\", \"down\""), DOWN, UP, BULK], "");
    let other = file(&[&mix("\"down\", \"up\", \"bulk\""), BULK, UP, DOWN], "");
    assert_eq!(seen(&one, 0), seen(&other, 0));
    // A mix within a mix is replaced by its parts.
    let inner = "name = \"inner\"\nkind = \"mix\"\nof = [\"up\", \"down\"]";
    let nested = file(&[&mix("\"inner\", \"bulk\""), inner, DOWN, UP, BULK], "");
    assert_eq!(seen(&one, 0), seen(&nested, 0));
}

#[test]
fn two_alike_are_not_one_twice() {
    let [a, b] =
        ["a", "b"].map(|n| format!("name = \"{n}\"\nkind = \"poisson\"\nrate = \"2Mbit\""));
    let mix = "name = \"mix\"\nkind = \"mix\"\nof = [\"a\", \"b\"]";
    let (_, observed) = run_of(&file(&[&a, &b, mix], ""), 2);
    let down: Vec<&PartTotals> = observed
        .parts
        .iter()
        .filter(|p| p.direction == Direction::Down)
        .collect();
    let of = |name: &str| down.iter().find(|p| p.part == name).expect("a row").arrived;
    assert!(of("a") > 0 && of("b") > 0 && of("a") != of("b"));
}

fn background_bytes(bins: &[Bin], from: f64, to: f64) -> u64 {
    bins.iter()
        .filter(|b| b.direction == Direction::Down && b.time >= from - 1e-9 && b.time < to - 1e-9)
        .map(|b| b.arrived[1])
        .sum()
}

#[test]
fn windows_are_silent_outside() {
    let parts = [
        DOWN,
        "name = \"bulk\"\nkind = \"greedy\"\nspread = \"0s\"",
        "name = \"fetches\"\nkind = \"web\"\nobject = \"50kB\"",
        BURSTS,
    ];
    for part in parts {
        let text = format!("{part}\nactive = {{ from = \"1s\", on = \"3s\", off = \"2s\" }}");
        let (_, observed) = run_of(&file(&[&text], ""), 0);
        let bytes = |from, to| background_bytes(&observed.bins, from, to);
        // Packets sent at the end of a window arrive later, by queueing and a round trip.
        for (from, to) in [(0.0, 1.0), (4.2, 6.0), (9.2, 11.0)] {
            assert_eq!(bytes(from, to), 0, "{part}: {from} to {to}");
        }
        for (from, to) in [(1.0, 4.2), (6.0, 9.2), (11.0, 12.0)] {
            assert!(bytes(from, to) > 50_000, "{part}: {from} to {to}");
        }
    }
}

#[test]
fn a_window_over_the_whole_run_is_the_run_without() {
    for part in [DOWN, UP, BULK, BURSTS] {
        let windowed = format!("{part}\nactive = {{}}");
        let plain = seen(&file(&[part], ""), 0);
        assert_eq!(plain, seen(&file(&[&windowed], ""), 0), "{part}");
    }
}

#[test]
fn learnt_traffic_begins_each_window_in_progress() {
    let part = "name = \"users\"\nkind = \"learnt\"\nmodel = \"browsing\"\nsessions = 20\nactive = { from = \"2s\", on = \"2s\", off = \"3s\" }";
    let (_, observed) = run_of(&file(&[part], ""), 0);
    let bytes = |from, to| background_bytes(&observed.bins, from, to);
    assert!(bytes(2.0, 4.0) > 0 && bytes(7.0, 9.0) > 0);
    assert_eq!(bytes(5.0, 7.0), 0);
}

#[test]
fn foregrounds_together_share_one_world() {
    let cbr = "[[foreground]]\nname = \"cbr\"\nkind = \"cbr\"\nrate = \"2Mbit\"\n[[background]]";
    let none = "name = \"none\"\nkind = \"none\"";
    let text = file(&[none, BULK], "together = true").replacen("[[background]]", cbr, 1);
    // Cells: web, then cbr, each beside none and bulk.
    let [web, own] = [1, 3].map(|cell| run_of(&text, cell));
    assert_eq!(web.1.parts, own.1.parts, "one world");
    assert_eq!(web.1.links, own.1.links);
    assert!(!web.1.requests.is_empty() && own.1.requests.is_empty());
}

/// The problems in a file with these backgrounds.
fn wrong(backgrounds: &[&str]) -> Vec<String> {
    let read: Result<File, _> = crate::file::read(&file(backgrounds, ""), "x");
    let problems = read.expect_err("a mistake").problems;
    problems
        .into_iter()
        .map(|p| format!("{}: {}", p.key, p.message))
        .collect()
}

#[test]
fn impossible_mixes_and_windows_are_refused() {
    let mix = |name: &str, of: &str| format!("name = \"{name}\"\nkind = \"mix\"\nof = [{of}]");
    assert_eq!(
        wrong(&[&mix("m", "")]),
        ["background[0].of: a mix of nothing"]
    );
    assert_eq!(
        wrong(&[DOWN, &mix("m", "\"down\", \"uq\"")]),
        ["background[1].of: unknown background `uq`"]
    );
    assert_eq!(
        wrong(&[DOWN, &mix("m", "\"down\", \"down\"")]),
        ["background[1].of: `down` is in it more than once"]
    );
    assert_eq!(
        wrong(&[DOWN, &mix("m", "\"n\", \"down\""), &mix("n", "\"m\"")]),
        [
            "background[1].of: `m` is a part of itself: m, n, m",
            "background[2].of: `n` is a part of itself: n, m, n",
        ]
    );
    assert_eq!(
        wrong(&[&mix("m", "\"m\"")]),
        ["background[0].of: `m` is a part of itself: m, m"]
    );
    for (windows, message) in [
        (
            "from = \"12s\"",
            "active.from: it begins at 12s, when the run is over",
        ),
        ("on = \"0s\"", "active.on: a window of no length"),
        (
            "on = \"1s\", off = \"0s\"",
            "active.off: windows without time between them are one window",
        ),
        (
            "on = \"1us\", off = \"1us\"",
            "active.on: more than 10000 windows in a run",
        ),
    ] {
        let found = wrong(&[&format!("{DOWN}\nactive = {{ {windows} }}")]);
        assert_eq!(found, [format!("background[0].{message}")]);
    }
}

#[test]
fn a_background_may_take_the_rate_of_a_mix_with_parts_that_are_scaled() {
    let scaled = "name = \"scaled\"\nkind = \"cbr\"\nrate = \"5Mbit\"\nload = \"carried\"";
    let mix = "name = \"mix\"\nkind = \"mix\"\nof = [\"scaled\", \"up\"]";
    let like = "name = \"like\"\nkind = \"poisson\"\nrate = \"match:mix\"";
    // The background that matches comes before the one that it matches.
    let text = file(&[like, mix, scaled, UP], "");
    let scratch = tempfile::tempdir().expect("a directory");
    let results = results_of(&text, scratch.path());
    let measured = &results.manifest.measured;
    assert!(measured["scaled"].factor.is_some());
    assert!((measured["mix"].down_bps / 8e6 - 1.0).abs() < 0.05);
    assert!((measured["mix"].up_bps / 1e6 - 1.0).abs() < 0.1);
}
