//! `swell compare`.

use super::{Scratch, run, text};

const EXPERIMENT: &str = r#"
name = "compared"
[network]
rate = "10Mbit"
delay = "5ms"
[[foreground]]
name = "page-with-a-name-that-is-quite-long"
kind = "web"
object = "20kB"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "poisson"
kind = "poisson"
rate = "4Mbit"
[run]
replications = 5
warmup = "1s"
duration = "6s"
"#;

#[test]
fn runs_side_by_side_say_what_was_changed_and_what_that_did() {
    let dir = Scratch::new("compare");
    dir.write("mine.toml", EXPERIMENT);
    for more in [
        &["-o", "fast"][..],
        &["-o", "slow", "--set", "network.rate=5Mbit"],
        &[
            "-o",
            "odd",
            "--set",
            "network.rate=5Mbit",
            "--set",
            "network.delay=9ms",
        ],
    ] {
        let done = run(&dir, &[&["run", "mine.toml"], more].concat());
        assert!(
            matches!(done.status.code(), Some(0 | 3)),
            "{}",
            text(&done.stderr)
        );
    }
    let done = run(
        &dir,
        &[
            "compare",
            "fast",
            "slow",
            "--by",
            "network.rate",
            "--html",
            "page.html",
        ],
    );
    let said = text(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{said}{}", text(&done.stderr));
    assert!(said.contains("network.rate: 10Mbit -> 5Mbit"), "{said}");
    assert!(
        said.contains("replications of equal seed are pairs"),
        "{said}"
    );
    assert!(said.contains("slow differs from fast"), "{said}");
    assert!(said.lines().all(|l| l.chars().count() <= 80), "{said}");
    let page = std::fs::read_to_string(dir.0.join("page.html")).unwrap();
    assert!(page.contains("slow compared with fast") && page.contains(">Run</th>"));
    assert!(!page.contains(">Background</th>"));
    // A difference that --by does not name is an error; without --by every difference is listed, with a doubt.
    let done = run(&dir, &["compare", "fast", "odd", "--by", "network.rate"]);
    assert_eq!(done.status.code(), Some(2));
    let said = text(&done.stderr);
    assert!(
        said.contains("differ in more than network.rate: network.delay (5ms, 9ms)"),
        "{said}"
    );
    let done = run(&dir, &["compare", "fast", "odd"]);
    assert!(text(&done.stderr).contains("[several-changes]"));
    let done = run(&dir, &["compare", "fast", "fast", "--by", "network.rate"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("do not differ in network.rate"));
    for (by, message, hint) in [
        (
            "network.rat",
            "fast and slow do not differ in network.rat",
            "did you mean `network.rate`?",
        ),
        ("", "--by is empty", "they differ in: network.rate"),
        (
            "run.seed",
            "replications are paired by their seeds",
            "swell show A B",
        ),
    ] {
        let done = run(&dir, &["compare", "fast", "slow", "--by", by]);
        assert_eq!(done.status.code(), Some(2));
        let said = text(&done.stderr);
        assert!(said.contains(message) && said.contains(hint), "{said}");
    }
    // NAME is runs/NAME, too; a picture can go to standard output, which then has nothing else.
    std::fs::create_dir(dir.0.join("runs")).unwrap();
    std::fs::rename(dir.0.join("slow"), dir.0.join("runs/slow")).unwrap();
    let done = run(&dir, &["show", "slow", "--svg", "-"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let said = text(&done.stdout);
    assert!(
        said.starts_with("<svg") && said.trim_end().ends_with("</svg>"),
        "{said}"
    );
    assert!(!dir.0.join("-").exists());
    let twice = run(&dir, &["show", "slow", "--svg", "-", "--vega", "-"]);
    assert_eq!(twice.status.code(), Some(2));
    // More replications are runs of other seeds.
    let more = [
        "run",
        "mine.toml",
        "-o",
        "fast",
        "--set",
        "run.replications=6",
    ];
    let said = text(&run(&dir, &more).stderr);
    assert!(
        said.contains("run.seed=6") && said.contains("swell show A B"),
        "{said}"
    );
    // Fewer are there already.
    let fewer = [&more[..5], &["run.replications=4"]].concat();
    let said = text(&run(&dir, &fewer).stderr);
    assert!(
        said.contains("--fresh") && !said.contains("run.seed"),
        "{said}"
    );
    // A picture as wide as a column (3.3 inches at 96 pixels per inch), and the bottleneck over time as a file.
    let shown = [
        "show",
        "fast",
        "--svg",
        "f.svg",
        "--picture",
        "time",
        "--size",
    ];
    assert!(
        run(&dir, &[&shown[..], &["3.3in"]].concat())
            .status
            .success()
    );
    let svg = std::fs::read_to_string(dir.0.join("f.svg")).unwrap();
    assert!(
        svg.contains("width=\"316.8\"") && svg.contains("Utilisation"),
        "{}",
        &svg[..300]
    );
    for wrong in ["3.3", "2px", "1x2x3in", "-3in", "NaNin"] {
        let done = run(&dir, &[&shown[..], &[wrong]].concat());
        assert_eq!(done.status.code(), Some(2), "{wrong}");
    }
    // A comparison needs two runs.
    assert_eq!(run(&dir, &["compare", "fast"]).status.code(), Some(2));
}

/// JSON has no other strings than Unicode, and file systems do.
#[test]
fn paths_that_are_not_utf_8_are_no_obstacle() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let dir = Scratch::new("latin");
    dir.write("mine.toml", EXPERIMENT);
    let name = OsStr::from_bytes(b"caf\xe9");
    let json = |command: &[&OsStr]| {
        let out = crate::swell(&dir)
            .args(command)
            .arg("--json")
            .output()
            .unwrap();
        assert!(crate::ran(&out), "{}", text(&out.stderr));
        serde_json::from_slice::<serde_json::Value>(&out.stdout).unwrap()
    };
    let [run, compare, made_up, o] = ["run", "compare", "--made-up", "-o"].map(OsStr::new);
    let ran = json(&[run, OsStr::new("mine.toml"), made_up, o, name]);
    assert_eq!(ran["run"], "caf\u{fffd}");
    assert_eq!(ran["report"], "caf\u{fffd}/report.html");
    assert!(dir.0.join(name).join("manifest.json").is_file());
    let compared = json(&[compare, name, name]);
    assert_eq!(compared["runs"][1], "caf\u{fffd}");
    let [report, learn] = ["report", "learn"].map(OsStr::new);
    let reported = json(&[report, name]);
    assert_eq!(reported["report"], "caf\u{fffd}/report.html");
    std::fs::write(dir.0.join("x.pcap"), crate::learn::lookup()).unwrap();
    let model = OsStr::from_bytes(b"mod\xe8le.json");
    let learnt = json(&[learn, OsStr::new("x.pcap"), o, model]);
    assert_eq!(learnt["model"], "mod\u{fffd}le.json");
}
