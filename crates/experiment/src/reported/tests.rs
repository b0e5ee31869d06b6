use super::*;

/// What wrk 4.2 prints.
const WRK: &str = "Running 3s test @ http://server/
  1 threads and 4 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   914.02us   12.31ms   1.20s    91.00%
    Req/Sec    82.40     10.11   101.00     70.00%
  Latency Distribution
     50%  14.02ms
     99%    1.20s
  246 requests in 3.00s, 1.02MB read
Requests/sec:     81.97
";

/// What ping prints.
const PING: &str = "64 bytes from server: icmp_seq=1 ttl=64 time=40.1 ms
64 bytes from server: icmp_seq=2 ttl=64 time=0.093 ms
";

fn read(text: &str) -> Reported {
    text.parse().unwrap()
}

/// The values of one measure, and the codes of the doubts.
fn found(measure: &str, stdout: &str, lines: &str) -> (Vec<f64>, Vec<String>) {
    let output = Output {
        stdout: stdout.into(),
        stderr: String::new(),
        at: 4.0,
    };
    let (samples, doubts) = values(&[read(measure)], [output], lines, 1.0);
    assert!(samples.iter().all(|s| s.at == 4.0));
    let codes = doubts.into_iter().map(|d| d.code.to_string()).collect();
    (samples.into_iter().map(|s| s.value).collect(), codes)
}

#[test]
fn a_definition_has_a_name_a_unit_a_direction_and_a_place() {
    let plain = read(r"p99: Latency\s+([\d.]+)ms");
    assert_eq!((&*plain.name, &*plain.unit), ("p99", ""));
    assert_eq!(plain.better, Better::Lower);
    assert_eq!(plain.pattern.as_deref(), Some(r"Latency\s+([\d.]+)ms"));
    assert!(!plain.primary && read(r"p99 (ms, primary): (\d+)").primary);
    let rate = read(r"request throughput (requests/s, higher): Requests/sec:\s+([\d.]+)");
    assert_eq!(
        (&*rate.name, &*rate.unit),
        ("request throughput", "requests/s")
    );
    assert_eq!(rate.better, Better::Higher);
    let path = read("p99=json:$.latency.p99");
    assert_eq!(path.json.as_deref(), Some("$.latency.p99"));
    assert_eq!(path.pattern, None);
    let lost = read("lost (%, floor 0.5): json:$.lost");
    assert_eq!((&*lost.unit, lost.floor), ("%", 0.5));
    let lines = read("frames late (lower): jsonl");
    assert_eq!((lines.pattern, lines.json), (None, None));
}

#[test]
fn what_is_wrong_with_a_definition_is_said() {
    let key = |text: &str| text.parse::<Reported>().unwrap_err().key;
    assert_eq!(key("Latency"), "name");
    assert_eq!(key(": ([0-9]+)"), "name");
    assert_eq!(key("p99:"), "name");
    assert_eq!(
        key("p99 (ms: ([0-9]+)"),
        "name",
        "the parenthesis ends inside the pattern"
    );
    assert_eq!(key("p99 (ms, s): ([0-9]+)"), "unit");
    assert_eq!(key("p99 (floor -1): ([0-9]+)"), "floor");
    assert_eq!(key("p99: Latency [0-9]+"), "pattern", "no group");
    assert_eq!(key("p99 (ms): (a)(b)(c)"), "pattern");
    assert_eq!(key("p99: ([0-9]+"), "pattern");
    assert_eq!(
        key("p99: ([0-9]+)(ms|s)"),
        "unit",
        "a unit, and none to convert to"
    );
    assert_eq!(key("p99: json:latency"), "json");
}

#[test]
fn numbers_are_found_in_what_programs_print() {
    assert_eq!(
        found(r"p99 (ms): 99%\s+([\d.]+)(us|ms|s)", WRK, "").0,
        [1200.0]
    );
    assert_eq!(
        found(r"mean (ms): Latency\s+([\d.]+)(us|ms|s)", WRK, "").0,
        [0.91402]
    );
    assert_eq!(
        found(
            r"rps (requests/s, higher): ^Requests/sec:\s+([\d.]+)",
            WRK,
            ""
        )
        .0,
        [81.97]
    );
    assert_eq!(
        found(r"rtt (ms): time=([\d.]+) ms", PING, "").0,
        [40.1, 0.093]
    );
    // A value that is not there, in words that programs use.
    let nan = found(r"rtt (ms): time=(\S+) ms", "time=nan ms", "");
    assert_eq!(nan, (vec![], vec!["measure-unread".to_owned()]));
    let nothing = found(r"p99 (ms): Latency\s+([\d.]+)ms", WRK, "");
    assert_eq!(nothing, (vec![], vec!["measure-missing".to_owned()]));
}

#[test]
fn standard_error_counts_and_so_does_every_run_of_the_client() {
    let one = |stderr: &str, at| Output {
        stdout: String::new(),
        stderr: stderr.into(),
        at,
    };
    let measure = [read(r"time_total (s): total (\S+)")];
    let (samples, doubts) = values(
        &measure,
        [one("total 0.25\n", 1.0), one("total 1e-1", 2.0)],
        "",
        1.0,
    );
    let pairs: Vec<(f64, f64)> = samples.iter().map(|s| (s.value, s.at)).collect();
    assert_eq!(pairs, [(0.25, 1.0), (0.1, 2.0)]);
    assert!(doubts.is_empty());
}

#[test]
fn units_are_converted() {
    for (from, to, factor) in [
        ("ms", "ms", 1.0),
        ("us", "ms", 1e-3),
        ("µs", "s", 1e-6),
        ("s", "ms", 1e3),
        ("m", "s", 60.0),
        ("msec", "ms", 1.0),
        ("Gbits/sec", "Mbits/sec", 1e3),
        ("KB", "MB", 1e-3),
        ("k", "requests/s", 1e3),
        ("", "ms", 1.0),
        ("KiB", "B", 1024.0),
        ("kiB/s", "B/s", 1024.0),
        ("MiB/s", "KiB/s", 1024.0),
        ("GiB", "MB", 1024f64.powi(3) / 1e6),
        ("Tibit", "bit", 1024f64.powi(4)),
        ("Ki", "B", 1024.0),
        ("Kitems", "items", 1e3),
        // Not tera-"PS", and not mega-"essages".
        ("k", "TPS", 1e3),
        ("k", "Messages/s", 1e3),
        ("K", "k", 1.0),
        ("k", "keys/s", 1e3),
        ("Mkeys/s", "keys/s", 1e6),
    ] {
        let got = convert(from, to).unwrap();
        assert!((got / factor - 1.0).abs() < 1e-12, "{from} {to} {got}");
    }
    for (from, to) in [
        ("s", "MB"),
        ("MB", "ms"),
        ("miles", "iles"),
        ("ms", "requests/s"),
        // Thousands of kB/s, or of B/s?
        ("k", "kB/s"),
        ("k", "ms"),
        ("k", "kreq/s"),
        ("k", "Mbit/s"),
    ] {
        assert_eq!(convert(from, to), None, "{from} {to}");
    }
}

#[test]
fn json_is_found_among_other_lines() {
    let text = "warming up [1]\n{\"end\": {\"sum\": {\"bps\": 9.5e6}}, \"intervals\": [{\"rtt\": 3}, {\"rtt\": \"4ms\"}]}\ndone\n";
    assert_eq!(
        found("bps (bit/s, higher): json:$.end.sum.bps", text, "").0,
        [9.5e6]
    );
    assert_eq!(
        found("rtt (ms): json:$.intervals[*].rtt", text, "").0,
        [3.0, 4.0]
    );
    assert_eq!(
        found("rtt (ms): json:$..nothing", text, "").1,
        ["measure-missing"]
    );
    // A program that was killed while it wrote.
    assert_eq!(
        found("rtt (ms): json:$.rtt", "{\"rtt\": 3", "").1,
        ["measure-missing"]
    );
    assert_eq!(
        found("rtt (ms): json:$.rtt", "{\"rtt\": true}", "").1,
        ["measure-unread"]
    );
}

#[test]
fn lines_of_json_are_measures_by_name() {
    let lines = "{\"stall\": 0.2, \"p\": 1}\n{\"stall\": [1, 2.5]}\nnonsense\n\n";
    let (values, doubts) = found("stall (s): jsonl", "", lines);
    assert_eq!(values, [0.2, 1.0, 2.5]);
    assert_eq!(doubts, ["odd-measures"]);
    let fine = found("stall (s): jsonl", "", "{\"stall\": 3}\n");
    assert_eq!(fine, (vec![3.0], vec![]));
}

/// A program on a network that runs at half the clock's speed says times twice too long.
#[test]
fn times_and_rates_are_the_networks_where_time_is_stretched() {
    let says = |measure: &str| {
        let output = Output {
            stdout: "x 8".into(),
            stderr: String::new(),
            at: 1.0,
        };
        let (samples, doubts) = values(&[read(measure)], [output], "", 2.0);
        (samples[0].value, doubts.len())
    };
    assert_eq!(says(r"a (ms): x (\d)"), (4.0, 0));
    assert_eq!(says(r"a (requests/s, higher): x (\d)"), (16.0, 0));
    assert_eq!(says(r"a (Mbps, higher): x (\d)"), (16.0, 0));
    for rate in [
        "bps", "kbps", "MBps", "Gibps", "fps", "kpps", "IOPS", "kqps", "B/s",
    ] {
        assert_eq!(
            says(&format!(r"a ({rate}, higher): x (\d)")),
            (16.0, 0),
            "{rate}"
        );
    }
    // Of a share or a count nobody knows: it stays, and is doubted.
    for other in ["%", "drops", "hops", "timestamps", "kdrops", "ps"] {
        assert_eq!(says(&format!(r"a ({other}): x (\d)")), (8.0, 1), "{other}");
    }
}

/// Nothing that a program writes makes the reader panic, or read for ever.
#[test]
fn hostile_output_is_read_in_bounded_time() {
    let braces = "{\n".repeat(100_000);
    let brackets = "[".repeat(100_000);
    for text in [
        &*braces,
        &*brackets,
        "{\"a\":1}{\"a\":2}[[",
        "\u{0}\u{fffd}{",
    ] {
        let (values, _) = found("a: json:$.a", text, text);
        assert!(values.len() <= 2);
    }
}
