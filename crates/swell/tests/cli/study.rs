//! `swell study`.

use crate::{Scratch, run, text};

#[test]
fn a_first_look_leaves_ledger_pictures_and_runs() {
    let dir = Scratch::new("study");
    let file = shortened(&dir, "burstiness", "5s");
    let first = run(&dir, &["study", "file", &file, "--quick"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let said = text(&first.stdout);
    for expected in [
        "S2.1",
        "S2.8b",
        "F2",
        "A10",
        "report: runs/study-burstiness-quick/report.html",
    ] {
        assert!(said.contains(expected), "no {expected} in {said}");
    }
    let widest = said.lines().map(|l| l.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?} columns in {said}");
    assert!(text(&first.stderr).contains("[quick-study]"));
    let study = dir.0.join("runs/study-burstiness-quick");
    let page = std::fs::read_to_string(study.join("report.html")).unwrap();
    assert!(page.contains("S2.4b") && page.contains("Figure 8"));
    for name in [
        "figure2-era.svg",
        "figure2-era.png",
        "figure8-today.svg",
        "startup-modern.svg",
    ] {
        assert!(study.join("pictures").join(name).is_file(), "{name}");
    }

    // The pictures are copied by name.
    let shown = "runs/study-burstiness-quick";
    let copied = run(
        &dir,
        &["show", shown, "--picture", "figure2-era", "--svg", "f.svg"],
    );
    assert!(copied.status.success(), "{}", text(&copied.stderr));
    let own = std::fs::read(study.join("pictures/figure2-era.svg")).unwrap();
    assert_eq!(std::fs::read(dir.0.join("f.svg")).unwrap(), own);
    // In the width of a column it is drawn from the study's numbers, and needs no runs.
    let column = |size: &str| {
        let args = [
            "show",
            shown,
            "--picture",
            "figure2-era",
            "--svg",
            "c.svg",
            "--size",
            size,
        ];
        let drawn = run(&dir, &args);
        assert!(drawn.status.success(), "{}", text(&drawn.stderr));
        std::fs::read_to_string(dir.0.join("c.svg")).unwrap()
    };
    assert!(column("700x420px").as_bytes() == own, "its own size");
    let narrow = column("3.3in");
    assert!(narrow.contains("width=\"316.8\"") && narrow.contains("data-name="));
    std::fs::rename(study.join("pictures/figure2-era.json"), dir.0.join("away")).unwrap();
    let args = [
        "show",
        shown,
        "--picture",
        "figure2-era",
        "--svg",
        "c.svg",
        "--size",
        "3.3in",
    ];
    let lost = run(&dir, &args);
    assert_eq!(lost.status.code(), Some(2));
    assert!(text(&lost.stderr).contains("the same `swell study` again"));
    std::fs::rename(dir.0.join("away"), study.join("pictures/figure2-era.json")).unwrap();
    let unknown = run(&dir, &["show", shown, "--picture", "x", "--pdf", "f.pdf"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("figure8-today"));

    // No run is repeated, nothing changes, and the JSON has the same content.
    let runs = std::fs::read(study.join("runs.csv")).unwrap();
    let again = run(&dir, &["study", "file", &file, "--quick", "--json"]);
    assert!(
        text(&again.stderr).contains("runs are there"),
        "{}",
        text(&again.stderr)
    );
    let json: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(json["study"]["ledgers"][0]["entries"][0]["id"], "S2.1");
    assert_eq!(json["study"]["ledgers"][0]["columns"][0], "era");
    assert_eq!(std::fs::read(study.join("runs.csv")).unwrap(), runs);
    assert_eq!(
        std::fs::read_to_string(study.join("report.html")).unwrap(),
        page
    );

    // A foreign table is not overwritten.
    std::fs::write(study.join("runs.csv"), "a,b\n").unwrap();
    let other = run(&dir, &["study", "file", &file, "--quick"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("line 1") && text(&other.stderr).contains("--fresh"));
}

/// Writes the files of a bundled study whose quick runs take 40 s, and makes them shorter. Returns the name of the file.
pub(super) fn shortened(dir: &Scratch, name: &str, duration: &str) -> String {
    let out = run(dir, &["study", name, "--write", "short"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let path = dir.0.join("short/study.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let short = text.replace("run.duration=40s", &format!("run.duration={duration}"));
    assert_ne!(short, text);
    std::fs::write(path, short).unwrap();
    "short/study.toml".into()
}

/// Writes an experiment of a second and a study of it.
fn small(dir: &Scratch) {
    let experiment = "name = 'small'\n[network]\nrate = '2Mbit'\n[[foreground]]\nname = 'page'\nkind = 'web'\n\
        object = '10kB'\n[[background]]\nname = 'noise'\nkind = 'poisson'\nrate = '1Mbit'\n\
        [run]\nwarmup = '0s'\nduration = '2s'\n";
    let study = "name = 'small'\ntitle = 'Does load matter?'\nexperiment = 'small.toml'\nseeds = 2\n\
        [[axis]]\nname = 'load'\nvalues = [0.5, 1.5]\nset = ['background.noise.rate=${load}Mbit']\n\
        [[measure]]\nname = 'arrived'\nvalue = 'down.arrived'\n\
        [[claim]]\nid = 'L1'\nclaim = 'more load, more packets'\n\
        value = 'runs()[1].arrived / runs()[0].arrived'\nholds = 'value.mean > 1.0'\n\
        [[figure]]\nname = 'arrived'\ntitle = 'Packets by load'\nx_title = 'load'\ny = 'arrived'\ny_title = 'packets'\n";
    std::fs::write(dir.0.join("small.toml"), experiment).unwrap();
    std::fs::write(dir.0.join("study.toml"), study).unwrap();
}

#[test]
fn a_study_of_ones_own_leaves_ledger_page_and_pictures() {
    let dir = Scratch::new("study-file");
    small(&dir);
    let first = run(&dir, &["study", "file", "study.toml"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let said = text(&first.stdout);
    assert!(said.contains("L1") && said.contains("holds"), "{said}");
    let results = dir.0.join("runs/study-small");
    let page = std::fs::read_to_string(results.join("report.html")).unwrap();
    assert!(page.contains("Does load matter?") && page.contains("value.mean &gt; 1.0"));
    assert!(results.join("pictures/arrived.svg").is_file());
    let table = std::fs::read_to_string(results.join("runs.csv")).unwrap();
    assert_eq!(table.lines().count(), 5, "{table}");
    // Two more seeds add two runs for each load; nothing else is run again.
    let more = run(&dir, &["study", "file", "study.toml", "--seeds", "3"]);
    assert!(
        text(&more.stderr).contains("4 of 6 runs are there"),
        "{}",
        text(&more.stderr)
    );
}

#[test]
fn the_listed_command_does_the_same_run() {
    let dir = Scratch::new("study-list");
    small(&dir);
    assert!(run(&dir, &["study", "file", "study.toml"]).status.success());
    let list = run(&dir, &["study", "file", "study.toml", "--list", "--json"]);
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    let set = list[1]["set"][0].as_str().unwrap();
    assert_eq!(set, "background.noise.rate=1.5Mbit");
    let more = [
        "--set",
        set,
        "--set",
        "run.seed=1",
        "--set",
        "run.replications=1",
    ];
    let alone: Vec<&str> = ["run", "small.toml", "-o", "alone"]
        .into_iter()
        .chain(more)
        .collect();
    let ran = run(&dir, &alone);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let results = swell_experiment::Results::load(&dir.0.join("alone")).unwrap();
    let arrived: u64 = results.runs[0].observed.links[1]
        .arrived_packets
        .iter()
        .sum();
    let table = std::fs::read_to_string(dir.0.join("runs/study-small/runs.csv")).unwrap();
    let row = table
        .lines()
        .find(|l| l.starts_with("all,all,1.5,1,"))
        .unwrap();
    assert!(row.ends_with(&format!(",{arrived}")), "{row} for {arrived}");
}

#[test]
fn a_mistake_in_a_study_has_its_place() {
    let dir = Scratch::new("study-mistake");
    small(&dir);
    let good = std::fs::read_to_string(dir.0.join("study.toml")).unwrap();
    std::fs::write(
        dir.0.join("study.toml"),
        good.replace("down.arrived", "down.arived"),
    )
    .unwrap();
    let bad = run(&dir, &["study", "file", "study.toml"]);
    assert_eq!(bad.status.code(), Some(2));
    let said = text(&bad.stderr);
    assert!(
        said.contains("study.toml:11:9") && said.contains("arived"),
        "{said}"
    );
    let none = run(&dir, &["study", "filler", "--with", "minuets=30"]);
    assert_eq!(none.status.code(), Some(2));
    let hint = "--with minuets=30: the study has no option `minuets`: it has minutes";
    assert!(text(&none.stderr).contains(hint), "{}", text(&none.stderr));
    assert!(!dir.0.join("runs").exists(), "nothing was run");
}

#[test]
fn a_study_that_the_program_carries_runs_anywhere_and_can_be_taken_out() {
    let dir = Scratch::new("study-carried");
    let out = run(&dir, &["study", "buffers", "--write", "mine"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert_eq!(text(&out.stdout).trim(), "swell study file mine/study.toml");
    assert!(text(&out.stderr).contains("mine/claims.toml"));
    assert!(!dir.0.join("runs").exists(), "nothing was run");
    // Changed files are not overwritten.
    let again = run(&dir, &["study", "buffers", "--write", "mine"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("is there already"));

    let first = run(&dir, &["study", "buffers", "--quick"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let page = std::fs::read_to_string(dir.0.join("runs/study-buffers-quick/report.html")).unwrap();
    assert!(page.contains("swell study buffers --quick --seeds 1"));
    // The exported files are the same study, so its runs are reused.
    let own = run(&dir, &["study", "file", "mine/study.toml", "--quick"]);
    assert!(
        text(&own.stderr).contains("20 of 20 runs are there"),
        "{}",
        text(&own.stderr)
    );
}

/// A bundled study accepts captures if its file defines how to use one.
#[test]
fn captures_are_for_studies_that_say_what_to_do_with_one() {
    let dir = Scratch::new("study-captures");
    let studies = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let mut takers = 0;
    for folder in std::fs::read_dir(studies).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let file = std::fs::read_to_string(folder.path().join("study.toml")).unwrap();
        let takes = file.lines().any(|line| line == "[capture]");
        takers += usize::from(takes);
        let help = run(&dir, &["study", &name, "--help"]);
        assert!(help.status.success());
        assert_eq!(text(&help.stdout).contains("TRACE"), takes, "{name}");
        let lost = run(&dir, &["study", &name, "monday.pcap"]);
        // A missing file, or an unknown argument.
        assert_eq!(lost.status.code(), Some(if takes { 1 } else { 2 }));
        assert!(text(&lost.stderr).contains("monday.pcap"), "{name}");
    }
    assert_eq!(takers, 1, "filler");
    // Whether a study file accepts captures is known only after it is read.
    small(&dir);
    let own = run(&dir, &["study", "file", "study.toml", "monday.pcap"]);
    assert_eq!(own.status.code(), Some(2));
    assert!(text(&own.stderr).contains("takes no captures"));
    assert!(!dir.0.join("runs").exists(), "nothing was run");
}

/// The help of a bundled study lists its options as in its file.
#[test]
fn options_are_in_the_help_of_studies_that_have_them() {
    let dir = Scratch::new("study-options");
    let studies = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let mut there = 0;
    for folder in std::fs::read_dir(studies).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let file = std::fs::read_to_string(folder.path().join("study.toml")).unwrap();
        let options: Vec<&str> = file.split("[[option]]\n").skip(1).collect();
        let help = run(&dir, &["study", &name, "--help"]);
        let help = text(&help.stdout);
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words.contains("--with"), !options.is_empty(), "{words}");
        for option in options {
            let value = |key: &str| {
                let start = format!("{key} = ");
                let mut lines = option.lines().take_while(|l| !l.is_empty());
                let found = lines.find_map(|l| l.strip_prefix(&start));
                found.map(|v| v.trim_matches('"').to_owned())
            };
            let [name, what] = ["name", "what"].map(|key| value(key).expect(key));
            let range = value("from").zip(value("to"));
            let range = range.map_or(String::new(), |(from, to)| format!(", {from} to {to}"));
            let line = format!("{name}: {what}{range}");
            assert!(words.contains(&line), "{line}: {words}");
            there += 1;
        }
    }
    assert_eq!(
        there, 10,
        "atlas and filler have one, harpoon two, router three, sensitivity three"
    );
    let bad = run(&dir, &["study", "filler", "--quick", "--with", "minutes=0"]);
    assert_eq!(bad.status.code(), Some(2));
    let said = text(&bad.stderr);
    assert!(
        said.contains("--with minutes=0: minutes is 1 to 120"),
        "{said}"
    );
}

/// A changed study does not overwrite the results of the original.
#[test]
fn a_changed_study_has_a_directory_of_its_own() {
    let dir = Scratch::new("study-changed");
    small(&dir);
    let path = dir.0.join("study.toml");
    let study = std::fs::read_to_string(&path).unwrap();
    let study = study.replacen("seeds = 2\n", "seeds = 2\nwith = { way = 'up' }\n", 1);
    std::fs::write(
        &path,
        study + "[[option]]\nname = 'way'\nwhat = 'where to'\n",
    )
    .unwrap();
    for (with, expected) in [
        ("way=up", "study-small"),
        ("way=a/../b", "study-small-way-a-..-b"),
    ] {
        let ran = run(&dir, &["study", "file", "study.toml", "--with", with]);
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        assert!(
            dir.0
                .join("runs")
                .join(expected)
                .join("report.html")
                .is_file()
        );
    }
}

#[test]
fn shards_of_a_study_give_its_table() {
    let dir = Scratch::new("study-shards");
    small(&dir);
    let command = ["study", "file", "study.toml"];
    let go = |more: &[&str]| run(&dir, &[&command[..], more].concat());
    assert!(go(&["-o", "one"]).status.success());
    let shard = go(&["-o", "parts", "--shard", "2/3"]);
    assert!(shard.status.success(), "{}", text(&shard.stderr));
    assert!(
        text(&shard.stdout).contains("1 of 4 runs"),
        "{}",
        text(&shard.stdout)
    );
    assert!(!dir.0.join("parts/report.html").exists());
    // A shard of another machine, in a directory of its own.
    assert!(go(&["-o", "other", "--shard", "1/3"]).status.success());
    let name = "runs.1-of-3.csv";
    std::fs::copy(
        dir.0.join("other").join(name),
        dir.0.join("parts").join(name),
    )
    .unwrap();
    let joined = go(&["-o", "parts"]);
    assert!(
        text(&joined.stderr).contains("3 of 4 runs are there"),
        "{}",
        text(&joined.stderr)
    );
    let [one, parts] =
        ["one", "parts"].map(|d| std::fs::read(dir.0.join(d).join("runs.csv")).unwrap());
    assert!(one == parts);
    let held = swell_experiment::run::Lock::take(&dir.0.join("one"), None).unwrap();
    let refused = go(&["-o", "one"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("one is in use by another swell"),
        "{}",
        text(&refused.stderr)
    );
    drop(held);
}

#[test]
fn the_spectrum_is_of_applications_that_are_known() {
    let dir = Scratch::new("spectrum");
    let out = run(
        &dir,
        &["study", "sensitivity", "--foreground", "5kB", "--quick"],
    );
    assert_eq!(out.status.code(), Some(2));
    let said = text(&out.stderr);
    assert!(
        said.contains("no column is called `5kB`; columns: 4kB, 1MB, page, stream, voice"),
        "{said}"
    );
}

#[test]
fn an_unknown_study_or_command_lists_those_that_there_are() {
    let dir = Scratch::new("study-unknown");
    for (words, message, hint) in [
        (
            &["study", "nonesuch"][..],
            "unknown study `nonesuch`",
            "known: background, ",
        ),
        (
            &["--json", "study", "filer"],
            "unknown study `filer`",
            "did you mean `filler`?",
        ),
        (
            &["agent", "nonesuch"],
            "unknown command `nonesuch`",
            "known: ca, enrol",
        ),
        (&["nonesuch"], "unknown command `nonesuch`", "known: "),
    ] {
        let out = run(&dir, words);
        assert_eq!(out.status.code(), Some(2), "{words:?}");
        let said = text(&out.stderr);
        assert!(
            said.contains(message) && said.contains(hint),
            "{words:?}: {said}"
        );
    }
}
