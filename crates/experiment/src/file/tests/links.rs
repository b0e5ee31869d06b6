//! Several links, and paths over them.

use super::*;
use swell_base::Direction;

fn file(network: &str, foreground: &str, background: &str) -> Result<File, Problems> {
    let text = format!(
        "name = \"x\"\n{network}\n[[foreground]]\nname = \"f\"\nkind = \"web\"\nobject = \"1MB\"\n{foreground}\n\
         [[background]]\nname = \"b\"\nkind = \"cbr\"\n{background}\n"
    );
    read(&text, "x.toml")
}

const TWO: &str = "[[links]]\nname = \"home\"\nrate = \"20Mbit\"\n[links.up]\nrate = \"2Mbit\"\n\
                   [[links]]\nname = \"core\"\nrate = \"10Mbit\"\ndelay = \"3ms\"\n\
                   [[links.change]]\nat = \"3s\"\ndelay = \"4ms\"\n";

#[test]
fn links_have_names_and_paths_take_them_in_order() {
    let found = file(
        TWO,
        "",
        "rate = \"1Mbit\"\npath = [\"core\"]\nreversed = true",
    )
    .unwrap();
    let names: Vec<String> = found.links().into_iter().map(|l| l.name).collect();
    assert_eq!(names, ["home", "core"]);
    let hop = |link, reversed| Hop { link, reversed };
    assert_eq!(
        found.hops(&found.foreground[0].route()),
        [hop(0, false), hop(1, false)]
    );
    assert_eq!(found.hops(&found.background[0].route()), [hop(1, true)]);
    let [up, down] = found.narrowest(&found.foreground[0]).unwrap();
    assert_eq!(
        (&*up.link, up.queue.direction, up.rate),
        ("home", Direction::Up, Rate::from_bps(2_000_000))
    );
    assert_eq!(
        (&*down.link, down.queue.direction),
        ("core", Direction::Down)
    );
    assert!(found.changes());
    // Delays default to 10ms: both directions of both links.
    assert_eq!(found.round_trip(&Route::default()).as_secs_f64(), 0.026);
    // The resolved file can be read again.
    assert_eq!(read(&found.to_toml(), "again").unwrap(), found);
}

/// `direction` is a key of every part that has a path. Endless transfers send both ways at once, too.
#[test]
fn any_part_may_flow_up() {
    let hops = |keys: &str| {
        let found = file(TWO, "", &format!("rate = \"1Mbit\"\n{keys}")).unwrap();
        assert_eq!(read(&found.to_toml(), "again").unwrap(), found);
        found.hops(&found.background[0].route())
    };
    assert_eq!(hops("direction = \"up\""), hops("reversed = true"));
    assert_eq!(hops("direction = \"down\""), hops(""));
    let twice = file(
        TWO,
        "",
        "rate = \"1Mbit\"\ndirection = \"up\"\nreversed = true",
    );
    let twice = twice.unwrap_err().to_string();
    assert!(
        twice.contains("background[0].direction") && twice.contains("`reversed` says already"),
        "{twice}"
    );
    let both = file(TWO, "", "rate = \"1Mbit\"\ndirection = \"both\"");
    let said = both.unwrap_err().to_string();
    assert!(said.contains("write a mix of two parts"), "{said}");
    // Its clients send: the path stays.
    let greedy =
        TWO.to_owned() + "[[foreground]]\nname = \"bulk\"\nkind = \"greedy\"\ndirection = \"up\"\n";
    let found = file(&greedy, "", "rate = \"1Mbit\"").unwrap();
    for one in &found.foreground {
        assert_eq!(found.hops(&one.route()).len(), 2);
        assert!(found.hops(&one.route()).iter().all(|hop| !hop.reversed));
    }
}

/// A rate may stand beside the delivery trace of one direction, whatever the other direction has.
#[test]
fn a_direction_with_deliveries_needs_no_rate() {
    let down = "[network]\nrate = \"8Mbit\"\n[network.down]\ndeliveries = \"lte.down\"\n";
    for up in ["", "[network.up]\nrate = \"384kbit\"\n"] {
        let found = file(&format!("{down}{up}"), "", "rate = \"100kbit\"");
        assert!(found.is_ok(), "{up}: {}", found.unwrap_err());
    }
    let zero = file(
        "[network]\nrate = \"0Mbit\"\n[network.up]\ndeliveries = \"lte.up\"\n",
        "",
        "rate = \"100kbit\"",
    );
    let text = zero.unwrap_err().to_string();
    assert!(text.contains("carries nothing"), "{text}");
}

#[test]
fn what_cannot_be_a_link_or_a_path_is_refused_where_it_stands() {
    let rate = "rate = \"1Mbit\"";
    let core = "path = [\"core\"]";
    let cases: [(&str, &str, &str, &str, &str); 12] = [
        (
            TWO,
            "path = [\"cor\"]",
            rate,
            "foreground[0].path[0]",
            "unknown link `cor`",
        ),
        (
            TWO,
            "path = []",
            rate,
            "foreground[0].path",
            "a path of no links",
        ),
        (
            TWO,
            "path = [\"home\", \"core\", \"home reversed\"]",
            rate,
            "foreground[0].path[2]",
            "crosses link `home` twice",
        ),
        (
            TWO,
            "path = [\"home\"]",
            "rate = \"1Mbit\"\npath = [\"core\"]",
            "background[0].path",
            "it cannot matter",
        ),
        (
            TWO,
            core,
            "rate = \"1Mbit\"\npath = [\"core\"]",
            "links[0].name",
            "no path crosses link `home`",
        ),
        (
            "[[links]]\nname = \"a\"\nrate = \"9Mbit\"\n[[links]]\nname = \"a\"\nrate = \"9Mbit\"",
            "",
            rate,
            "links[1].name",
            "two links called `a`",
        ),
        (
            "[[links]]\nname = \"a b\"\nrate = \"9Mbit\"",
            "",
            rate,
            "links[0].name",
            "cannot name a link",
        ),
        (
            "[[links]]\nname = \"a\"",
            "",
            rate,
            "links[0].rate",
            "has no rate",
        ),
        (
            "[network]\nrate = \"1Mbit\"\n[[links]]\nname = \"a\"\nrate = \"9Mbit\"",
            "",
            rate,
            "network",
            "beside `[[links]]`",
        ),
        (
            "[network]\npreset = \"residential\"\n[[links]]\nname = \"a\"\nrate = \"9Mbit\"",
            "",
            rate,
            "network.preset",
            "give one of the two",
        ),
        (
            "[network]\npreset = { kind = \"parking-lot\", links = 0 }",
            "",
            rate,
            "network.preset.links",
            "out of range",
        ),
        (
            "[network]\npreset = \"residentail\"",
            "",
            rate,
            "network.preset",
            "did you mean `residential`?",
        ),
    ];
    for (network, foreground, background, key, said) in cases {
        let problems = file(network, foreground, background).unwrap_err().problems;
        let one = problems.iter().find(|p| p.key == key);
        let one = one.unwrap_or_else(|| panic!("{key}: {problems:?}"));
        assert!(format!("{one:?}").contains(said), "{said}: {one:?}");
        assert!(one.hint.is_some() || key.ends_with("rate"), "{one:?}");
    }
}

#[test]
fn a_rate_is_held_against_every_link_of_its_path() {
    let too_fast = |background: &str| {
        let found = file(TWO, "", background);
        found.map_err(|p| {
            p.problems
                .iter()
                .map(|p| p.message.clone())
                .collect::<Vec<_>>()
        })
    };
    // 20 on the way down to the first, but 10 on the way through the second.
    let said = too_fast("rate = \"15Mbit\"").unwrap_err();
    assert_eq!(
        said,
        ["15Mbit are more than link `core` carries down, which is 10Mbit"]
    );
    assert!(too_fast("rate = \"15Mbit\"\npath = [\"home\"]").is_ok());
    // The down direction of clients on the right is the up direction of the link.
    let turned = too_fast("rate = \"5Mbit\"\npath = [\"home\"]\nreversed = true").unwrap_err();
    assert_eq!(
        turned,
        ["5Mbit are more than link `home` carries up, which is 2Mbit"]
    );
    // The rate of traffic elsewhere may be more than a path carries. On the same one it is said once.
    let taken = "[[background]]\nname = \"m\"\nkind = \"poisson\"\nrate = \"match:b\"\n";
    let elsewhere = format!("rate = \"15Mbit\"\npath = [\"home\"]\n{taken}");
    assert_eq!(too_fast(&elsewhere).unwrap_err(), said);
    assert!(too_fast(&format!("{elsewhere}path = [\"home\"]")).is_ok());
    assert_eq!(
        too_fast(&format!("rate = \"15Mbit\"\n{taken}")).unwrap_err(),
        said
    );
}

#[test]
fn presets_are_written_out_as_links() {
    let with = |preset: &str, rest: &str| {
        let network = format!("[network]\npreset = {preset}\n{rest}");
        let mut found = file(&network, "", "rate = \"1Mbit\"").unwrap();
        assert!(found.write_out());
        assert_eq!(read(&found.to_toml(), "again").unwrap(), found);
        found.links
    };
    let lot = with(
        "{ kind = \"parking-lot\", links = 3 }",
        "rate = \"4Mbit\"\nqdisc = \"codel\"",
    );
    let names: Vec<&str> = lot.iter().map(|l| &*l.name).collect();
    assert_eq!(names, ["link1", "link2", "link3"]);
    for link in &lot {
        let [up, down] = link.keys.directions();
        assert_eq!(
            (up.rate, up.delay),
            (Rate::from_bps(4_000_000), Dur::from_millis(10))
        );
        assert_eq!(up, down);
        assert_eq!(up.qdisc.label(), "CoDel");
    }
    let home = with("\"residential\"", "[network.down]\nrate = \"30Mbit\"");
    let rates: Vec<[u64; 2]> = home
        .iter()
        .map(|l| l.keys.directions().map(|d| d.rate.bps() / 1_000_000))
        .collect();
    assert_eq!(rates, [[50, 50], [10, 30], [1000, 1000]]);
    assert_eq!(
        home[1].keys.directions().map(|d| d.qdisc.label()),
        ["FQ-CoDel", "FIFO"]
    );
}

#[test]
fn a_home_on_cable_shares_a_segment_and_a_campus_has_one_link() {
    let of = |preset: &str| {
        let network = format!("[network]\npreset = \"{preset}\"\n[network.up]\nqueue = \"256KiB\"");
        let found = file(&network, "", "rate = \"100kbit\"").expect("a network");
        assert_eq!(read(&found.to_toml(), "again").expect("the same"), found);
        let links = found.links().into_iter();
        let rates = links.map(|l| {
            let sides = l.keys.directions();
            (l.name, sides.map(|d| d.rate.bps() / 1000))
        });
        rates.collect::<Vec<_>>()
    };
    let home = [("access", [384, 6000]), ("segment", [10_000, 38_000])];
    assert_eq!(of("cable"), home.map(|(n, r)| (n.to_owned(), r)));
    assert_eq!(of("campus"), [("access".to_owned(), [100_000; 2])]);
}

#[test]
fn a_leaf_spine_is_used_by_path() {
    let mut found = file(
        "[network]\npreset = { kind = \"leaf-spine\", leaves = 3, spines = 2 }",
        "path = [\"leaf1-spine2\", \"leaf3-spine2 reversed\"]",
        "rate = \"1Mbit\"\npath = [\"leaf3-spine2\"]",
    )
    .unwrap();
    assert_eq!(found.links().len(), 6);
    // Hosts of a data centre are not 20 ms apart.
    assert_eq!(found.network.access_delay().to_string(), "5us");
    found.write_out();
    assert_eq!(found.network.access_delay().to_string(), "5us");
    let names: Vec<String> = found.links().into_iter().map(|l| l.name).collect();
    // Links that no part crosses are omitted.
    assert_eq!(names, ["leaf1-spine2", "leaf3-spine2"]);
    let hops = found.hops(&found.foreground[0].route());
    assert_eq!(
        hops.iter().map(|h| h.reversed).collect::<Vec<_>>(),
        [false, true]
    );
}
