//! Checks the filler study against closed forms, against ns-2.35 and on a real trace.

use std::path::PathBuf;

use swell_experiment::Traces;
use swell_study::file::{FileStudy, Overrides, StudyError};

fn read(overrides: &Overrides) -> Result<FileStudy, StudyError> {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../studies/filler/study.toml"
    );
    FileStudy::read(file.as_ref(), overrides)
}

fn study() -> FileStudy {
    read(&Overrides::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// The measures of a run, by name.
fn run(study: &FileStudy, name: &str) -> impl Fn(&str) -> f64 + use<> {
    let place = study.groups().position(|g| g.name == name);
    let place = place.unwrap_or_else(|| panic!("no runs {name}"));
    let numbers = study.run_one(place, 1).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<String> = study.measures().map(str::to_owned).collect();
    move |measure| {
        let i = names.iter().position(|n| n == measure);
        numbers[i.expect("a measure of the study")]
    }
}

/// A run, measurements of pre-existing packets, and of the filler if there was one.
type Anchor = (&'static str, [f64; 4], Option<[f64; 3]>);

/// Results of ns-2.35 for the same packets: its strict-priority queue (`Queue/SimpleIntServ`, two classes), its
/// replayer of traces over UDP and its `TCP/Sack1` with delayed acknowledgements, released defaults, 600 s.
/// Pre-existing packets: percent dropped, delay in milliseconds, thousands of bytes per second, and the delay in
/// the other direction; then the first three for the filler. Measured once.
#[rustfmt::skip]
const ANCHORS: [Anchor; 12] = [
    ("selfsim1, none, rate = 3, latency = 20", [0.44914, 22.44783, 181.263, 21.58672], None),
    ("selfsim1, filler, rate = 3, latency = 20", [0.60853, 23.53347, 180.987, 21.58751], Some([1.29583, 39.29074, 160.845])),
    ("selfsim1, none, rate = 10, latency = 20", [0.0, 20.38096, 182.078, 20.34894], None),
    ("selfsim1, filler, rate = 10, latency = 20", [0.0, 20.7668, 182.078, 20.34926], Some([0.0826, 31.9657, 1030.226])),
    ("selfsim2, none, rate = 3, latency = 20", [0.09966, 22.0723, 156.728, 21.56334], None),
    ("selfsim2, filler, rate = 3, latency = 20", [0.15697, 23.18327, 156.628, 21.56425], Some([1.1925, 36.47324, 181.726])),
    ("selfsim2, none, rate = 10, latency = 20", [0.0, 20.36817, 156.874, 20.34793], None),
    ("selfsim2, filler, rate = 10, latency = 20", [0.0, 20.75334, 156.874, 20.34823], Some([0.06666, 31.7718, 1051.905])),
    ("poisson, none, rate = 3, latency = 20", [0.02126, 21.99992, 168.208, 21.55642], None),
    ("poisson, filler, rate = 3, latency = 20", [0.04253, 23.11741, 168.158, 21.55733], Some([1.12845, 37.40384, 174.641])),
    ("poisson, none, rate = 10, latency = 20", [0.0, 20.36799, 168.248, 20.34885], None),
    ("poisson, filler, rate = 10, latency = 20", [0.0, 20.75523, 168.246, 20.34914], Some([0.05687, 32.0892, 1045.653])),
];

#[test]
fn agrees_with_ns_2_on_the_same_packets() {
    let study = study();
    for (name, [drop, delay, carried, back], filler) in ANCHORS {
        let get = run(&study, name);
        let near = |measure: &str, theirs: f64, share: f64, floor: f64| {
            let ours = get(measure);
            assert!(
                (ours - theirs).abs() <= (theirs * share).max(floor),
                "{name}: {measure} is {ours}, theirs {theirs}"
            );
        };
        near("drop", drop / 100.0, 0.1, 0.0005);
        near("delay", delay / 1e3, 0.02, 0.0);
        near("carried", carried * 8e3, 0.03, 0.0);
        near("back_delay", back / 1e3, 0.02, 0.0);
        if let Some([lost, late, rate]) = filler {
            near("filler_drop", lost / 100.0, 0.1, 0.0005);
            near("filler_delay", late / 1e3, 0.02, 0.0);
            near("filler_carried", rate * 8e3, 0.03, 0.0);
        }
    }
}

/// The sizes of the packets: 40, 552 and 1500 bytes.
const SIZES: [(f64, f64); 3] = [(40.0, 0.5), (552.0, 0.4), (1500.0, 0.1)];

#[test]
fn the_wait_is_the_formula_for_poisson_arrivals() {
    let study = study();
    for rate in [6, 10] {
        for line in ["none", "filler"] {
            let get = run(
                &study,
                &format!("poisson, {line}, rate = {rate}, latency = 20"),
            );
            let (wait, formula) = (get("wait"), get("formula"));
            assert!(
                (wait / formula - 1.0).abs() < 0.02,
                "{rate} Mbit/s, {line}: {wait} against {formula}"
            );
            // By hand, from the size distribution and the filler's packets of 1000 bytes.
            let bit = 8.0 / (f64::from(rate) * 1e6);
            let moment = |k| {
                SIZES
                    .iter()
                    .map(|s| s.1 * f64::powi(s.0 * bit, k))
                    .sum::<f64>()
            };
            let arrivals = get("packets") / 600.0;
            let share = get("filler_carried") * bit / 8.0;
            let residual = arrivals * moment(2) / 2.0 + share * 1000.0 * bit / 2.0;
            let hand = residual / (1.0 - arrivals * moment(1));
            // The sampled sizes deviate slightly from the distribution.
            assert!((formula / hand - 1.0).abs() < 0.01, "{formula} and {hand}");
        }
    }
}

#[test]
fn every_way_of_sending_filler_has_runs_without() {
    let study = study();
    let names: Vec<&str> = study.groups().map(|g| g.name.as_str()).collect();
    for column in ["selfsim1", "selfsim2", "poisson"] {
        for scheduler in ["drr", "fq", "fifo"] {
            for filler in ["none", "sack"] {
                let name = format!("{column}, {scheduler}-{filler}, rate = 10, latency = 20");
                assert!(names.contains(&name.as_str()), "{name}");
            }
        }
    }
    // Eleven settings and three lines, three buffers, one at six latencies, thirteen others.
    assert_eq!(names.len(), 3 * (11 * 3 + 3 + 6 + 13));
}

#[test]
fn a_first_look_says_so_and_the_doubts_of_a_capture_are_told() {
    // One frame of five has a header length that no IPv4 header can have.
    let folder = tempfile::tempdir().expect("a folder");
    let mine = folder.path().join("mine.pcap");
    std::fs::write(&mine, pcap(5, 3)).expect("a file");
    let quick = Overrides {
        quick: true,
        captures: vec![mine],
        ..Overrides::default()
    };
    let first = read(&quick).unwrap_or_else(|e| panic!("{e}"));
    let numbers: Vec<Vec<f64>> = (first.groups().enumerate())
        .map(|(i, g)| (first.run_one(i, 1)).unwrap_or_else(|e| panic!("{}: {e}", g.name)))
        .collect();
    let doubts = first.study(&numbers).doubts;
    let codes: Vec<&str> = doubts.iter().map(|d| d.code.as_str()).collect();
    // There is no doubt about few seeds, and every claim could be evaluated.
    assert_eq!(codes, ["quick-study", "capture-bad-ip"], "{doubts:?}");
    let said = "capture mine: 1 of 5 captured frames have an IP header that contradicts itself";
    assert!(doubts[1].message.starts_with(said), "{doubts:?}");
}

/// A capture of raw IPv4 (<https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html>): UDP packets of 100 bytes
/// between two hosts, in alternate directions, a second apart; `damaged` of them have an IP header length of zero.
fn pcap(packets: u32, damaged: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for n in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101] {
        out.extend(u32::to_le_bytes(n));
    }
    let hosts = [[10, 0, 0, 1], [198, 51, 100, 7]];
    for i in 0..packets {
        for n in [i, 0, 28, 100] {
            out.extend(u32::to_le_bytes(n));
        }
        let version = if i == damaged { 0x40 } else { 0x45 };
        out.extend([version, 0, 0, 100, 0, 0, 0, 0, 64, 17, 0, 0]);
        let way = (i % 2) as usize;
        out.extend([hosts[way], hosts[1 - way]].concat());
        out.extend([0x10, 0, 0x10, 0, 0, 80, 0, 0]);
    }
    out
}

#[test]
fn a_strange_capture_is_refused() {
    let strange = Overrides {
        captures: vec![concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into()],
        ..Overrides::default()
    };
    let why = read(&strange).expect_err("no capture").to_string();
    assert!(why.contains("Cargo.toml"), "{why}");
}

#[test]
fn a_real_trace_is_one_more_column() {
    let folder = std::env::var_os("SWELL_TRACES").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../shared/traces"
            ))
        },
        PathBuf::from,
    );
    let path = folder.join("derived/composite-access-link-5min.pcap.zst");
    if !path.exists() {
        let path = path.display();
        return swell_needs::skip(format_args!("{path} is missing; set SWELL_TRACES"));
    }
    let overrides = Overrides {
        captures: vec![path],
        ..Overrides::default()
    };
    let study = read(&overrides).unwrap_or_else(|e| panic!("{e}"));
    let own: Vec<_> = (study.groups())
        .filter(|g| g.name.starts_with("composite-access-link-5min, "))
        .collect();
    assert_eq!(own.len(), 55);
    let name = "composite-access-link-5min, none, rate = 15, latency = 20";
    let command = own.iter().find(|g| g.name == name).expect("it").command(1);
    assert!(command.contains("composite-access-link-5min.pcap.zst"));
    let capture =
        (Traces::default().read(&overrides.captures[0], &[])).unwrap_or_else(|e| panic!("{e}"));
    let (mut sent, mut packets) = (capture.bps(), capture.packets.map(|way| way.len()));
    // The direction with more bytes comes first.
    if sent[0] < sent[1] {
        sent.reverse();
        packets.reverse();
    }
    let get = run(&study, name);
    // Packets larger than the link's MTU are split.
    assert!(get("packets") >= packets[0] as f64, "{packets:?}");
    assert!(get("drop") < 0.05);
    for (measure, rate) in [("carried", sent[0]), ("back_carried", sent[1])] {
        // A capture's rates are relative to its period, and the run ends a second or two later.
        let ratio = get(measure) * get("simulated") / (rate * capture.period.as_secs_f64());
        assert!((0.95..=1.01).contains(&ratio), "{measure}: {ratio}");
    }
    let twice = Overrides {
        captures: vec![overrides.captures[0].clone(); 2],
        ..Overrides::default()
    };
    let why = read(&twice).expect_err("two of a name").to_string();
    assert!(why.contains("another column"), "{why}");
}
