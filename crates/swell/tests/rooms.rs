//! Invariants across the crates.

use std::path::Path;

/// ARCHITECTURE.md, "Invariants": all pure crates have the same bans in clippy.toml.
#[test]
fn the_pure_rooms_have_the_same_bans() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let bans = |room: &str| std::fs::read_to_string(crates.join(room).join("clippy.toml")).unwrap();
    let base = bans("base");
    assert!(base.contains("std::time::Instant::now"));
    for room in [
        "path", "tcp", "stats", "traffic", "learn", "workload", "world",
    ] {
        assert_eq!(bans(room), base, "{room}");
    }
}
