//! The burstiness paper as a study file, which anybody could have written, against the same study in Rust: equal
//! seeds give equal packets.
//!
//! Where handshakes and exact ties meet (TCP with SYNs in `today`, overloaded) the first SYNs, all of one
//! instant, go in another order, and numbers agree only in distribution; such runs are not compared here.

use std::path::Path;

use swell_study::burstiness::lineup::{BACKGROUND, Profile};
use swell_study::burstiness::results::warm;
use swell_study::burstiness::scenario::Scenario;
use swell_study::file::{FileStudy, Wish};

/// Combinations of the first look, and what the Rust study calls them: transport, queue, clients added to others.
const SAME: [(&str, &str, &str, u16, u16); 10] = [
    ("era, udp, clients = 45", "udp", "fifo", 45, 0),
    ("era, reno, clients = 60", "reno", "fifo", 60, 0),
    ("era, vegas-red, clients = 45", "vegas", "red", 45, 0),
    (
        "modern, renodelack, clients = 45",
        "renodelack",
        "fifo",
        45,
        0,
    ),
    ("modern, vegas, clients = 45", "vegas", "fifo", 45, 0),
    (
        "modern, reno-red-w0.002, clients = 60",
        "reno",
        "red-w0.002",
        60,
        0,
    ),
    (
        "modern, reno-waited, clients = 60",
        "reno",
        "fifo-waited",
        60,
        0,
    ),
    (
        "modern, reno-fq_codel, clients = 45",
        "reno",
        "fq_codel",
        45,
        0,
    ),
    ("today, vegas, clients = 45", "vegas", "fifo", 45, 0),
    (
        "era, added-vegas-red1, clients = 40",
        "vegas",
        "red1",
        40,
        BACKGROUND,
    ),
];

#[test]
fn the_file_and_the_code_give_the_same_numbers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/burstiness/study.toml");
    let wish = Wish {
        quick: true,
        seeds: None,
    };
    let study = FileStudy::read(&path, &wish).unwrap_or_else(|e| panic!("{e}"));
    for (name, transport, gateway, clients, background) in SAME {
        let place = study.groups().position(|g| g.name == name);
        let ours = study.run_one(place.expect(name), 2).unwrap();
        let number = |measure: &str| ours[study.measures().position(|m| m == measure).unwrap()];
        let profile = Profile::ALL
            .into_iter()
            .find(|p| name.starts_with(p.name()))
            .unwrap();
        let scenario = Scenario::named(profile, transport, gateway, clients).unwrap();
        let code = Scenario {
            seed: 2,
            seconds: 40,
            background,
            ..scenario
        }
        .simulate();
        assert_eq!(number("cov"), code.cov[0], "{name}");
        assert_eq!(number("cov_warm"), code.cov[warm()], "{name}");
        assert_eq!(number("delivered"), code.delivered[1], "{name}");
        assert_eq!(number("loss"), code.loss(1), "{name}");
        assert_eq!(number("background_delivered"), code.delivered[0], "{name}");
        assert_eq!(number("background_loss"), code.loss(0), "{name}");
        assert_eq!(number("retransmissions"), code.retransmissions, "{name}");
    }
}
