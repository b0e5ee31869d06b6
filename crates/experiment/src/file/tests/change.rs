//! `[[network.change]]` and delivery traces.

use super::*;

const CHANGING: &str = r#"
name = "changing"
[network]
rate = "20Mbit"
[network.down]
deliveries = { file = "lte.down", phase = "0s" }
[[network.change]]
at = "30s"
every = "60s"
direction = "down"
outage = "2s"
outage_packets = "lost"
[[network.change]]
at = "10s"
rate = "5Mbit"
delay = "50ms"
loss = { kind = "independent", p = 0.01 }
qdisc = "codel"
queue = "50pkt"
[[foreground]]
name = "a"
kind = "web"
object = "1MB"
[[background]]
name = "none"
kind = "none"
"#;

#[test]
fn it_reads_back_as_itself() {
    let file = read(CHANGING, "x").unwrap();
    assert_eq!(
        read(&file.to_toml(), "x").unwrap(),
        file,
        "{}",
        file.to_toml()
    );
    let [up, down] = file.network.link.directions();
    assert!(up.deliveries.is_none() && up.rate == Rate::from_bps(20_000_000));
    // The common rate is not that of a direction with a trace: its mean is filled in.
    assert_eq!(
        (down.deliveries.unwrap().file.as_str(), down.rate.bps()),
        ("lte.down", 0)
    );
    let short = CHANGING.replace("{ file = \"lte.down\", phase = \"0s\" }", "\"lte.down\"");
    assert_eq!(
        read(&short, "x").unwrap().network.link.directions()[1]
            .deliveries
            .as_ref()
            .unwrap()
            .phase,
        None
    );
}

#[test]
fn what_cannot_be_is_said_with_its_place_and_a_hint() {
    for (from, to, what) in [
        (
            "rate = \"5Mbit\"",
            "rte = \"5Mbit\"",
            "did you mean `rate`?",
        ),
        ("at = \"10s\"", "", "missing key `at`"),
        ("at = \"10s\"", "at = 10", "with its unit"),
        ("rate = \"5Mbit\"", "rate = \"0Mbit\"", "outage ="),
        (
            "rate = \"5Mbit\"",
            "rate = \"5Mbit\"\ndeliveries = \"x\"",
            "give one of the two",
        ),
        (
            "direction = \"down\"",
            "direction = \"downwards\"",
            "network.change[0].direction",
        ),
        ("every = \"60s\"", "every = \"2s\"", "when the next begins"),
        ("every = \"60s\"", "every = \"10us\"", "1ms or more"),
        ("outage = \"2s\"", "", "there is no outage"),
        ("outage = \"2s\"", "outage = \"0s\"", "no length"),
        ("outage = \"2s\"", "outage = \"30h\"", "outlasts"),
        ("p = 0.01", "p = 1.5", "network.change[1].loss.p"),
        (
            "queue = \"50pkt\"",
            "queue = \"0pkt\"",
            "network.change[1].queue",
        ),
        (
            "qdisc = \"codel\"",
            "qdisc = \"coddle\"",
            "network.change[1].qdisc",
        ),
        ("file = \"lte.down\", ", "", "missing key `file`"),
        (
            "deliveries = { file = \"lte.down\", phase = \"0s\" }",
            "deliveries = 3",
            "network.down.deliveries",
        ),
    ] {
        let complaint = complaint_in(CHANGING, from, to);
        assert!(complaint.contains(what), "{to}: {complaint}");
    }
    let empty = CHANGING.replace("outage = \"2s\"\noutage_packets = \"lost\"\n", "");
    let complaint = read(&empty, "x").unwrap_err().to_string();
    assert!(complaint.contains("nothing changes"), "{complaint}");
}
