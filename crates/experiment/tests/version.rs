//! Results of a small experiment, to the bit. Where a change alters them, the number after the plus sign in
//! [`VERSION`] has to rise: runs are resumed and joined by version.

use std::collections::BTreeMap;
use std::path::Path;

use swell_experiment::{Backend, Plan, Simulator, VERSION};

/// The version, and a digest of its results.
const KNOWN: (&str, u64) = ("0.1.0+7", 12_401_784_633_184_602_065);

const EXPERIMENT: &str = r#"
name = "version"
[network]
rate = "10Mbit"
[run]
warmup = "2s"
duration = "20s"
[[foreground]]
name = "downloads"
kind = "web"
object = "100kB"
think = "500ms"
[[background]]
name = "learnt"
kind = "learnt"
model = "access-link"
rate = "6Mbit"
[[background]]
name = "flow-level"
kind = "learnt"
model = "isi-2pm"
rate = "3Mbit"
[[background]]
name = "on-off"
kind = "on-off"
rate = "2Mbit"
[[background]]
name = "poisson"
kind = "poisson"
rate = "6Mbit"
"#;

#[test]
fn results_that_change_have_another_version() {
    let plan = Plan::resolve(EXPERIMENT, "version", Path::new(".")).unwrap();
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for cell in &plan.cells {
        let spec = plan.spec(cell, &BTreeMap::new()).unwrap();
        let observed = Simulator.run(&spec, &|_| {}, &|| false).unwrap();
        assert!(!observed.requests.is_empty());
        for times in observed
            .requests
            .iter()
            .map(|r| [r.start, r.observed_until])
        {
            for byte in times.iter().flat_map(|t| t.to_bits().to_le_bytes()) {
                digest = (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
    }
    assert_eq!(
        (VERSION, digest),
        KNOWN,
        "raise the number in `VERSION`, write its results here, and say in CHANGELOG.md what changed"
    );
}
