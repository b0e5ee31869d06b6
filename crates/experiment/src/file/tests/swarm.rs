//! Swarms.

use super::*;

const SWARM: &str = r#"
name = "swarm"
[network]
rate = "10Mbit"
[[foreground]]
name = "page"
kind = "web"
object = "100kB"
[[background]]
name = "swarm"
kind = "swarm"
[run]
"#;

#[test]
fn impossible_swarms_are_refused() {
    assert!(read(SWARM, "x.toml").is_ok());
    for (keys, what) in [
        ("peers = 0", "0 peers are out of range"),
        ("peers = 10001", "write 1 to 10000"),
        ("slots = 0", "0 slots"),
        ("pipeline = 0", "0 pipeline"),
        ("seeds = 1.5", "no probability"),
        ("upload = \"0bit\"", "lets no block through"),
        ("download = \"0bit\"", "lets no block through"),
        ("access = []", "sum to"),
        (
            "access = [{ up = \"1Mbit\", down = \"1Mbit\", share = 0.5 }]",
            "sum to 0.5",
        ),
        (
            "access = [{ up = \"0bit\", down = \"1Mbit\", share = 1 }]",
            "carries nothing",
        ),
        ("delay = []", "a list of no delays"),
        (
            "delay = { from = \"2s\", to = \"1s\" }",
            "shorter one first",
        ),
        ("rate = \"5Mbit\"", "kind = \"swarm\" has no rate to set"),
    ] {
        let found = complaint_in(SWARM, "\n[run]", &format!("\n{keys}\n[run]"));
        assert!(found.contains(what), "{keys}: {found}");
        assert!(found.contains("background[0]."), "{keys}: {found}");
    }
    let other = "[[background]]\nname = \"b\"\nkind = \"cbr\"\nrate = \"match:swarm\"\n[run]";
    assert!(complaint_in(SWARM, "[run]", other).contains("no rate to match"));
    let emulated = SWARM
        .replace("[network]", "backend = \"emulated\"\n[network]")
        .replace("\"web\"\nobject = \"100kB\"", "\"swarm\"");
    let found = read(&emulated, "x.toml").unwrap_err().to_string();
    assert!(found.contains("simulated only"), "{found}");
}
