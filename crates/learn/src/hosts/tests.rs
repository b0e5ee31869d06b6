use super::measured::{RESERVOIR, Reservoir};
use super::*;

fn reservoir(values: impl IntoIterator<Item = u32>, seed: u64) -> Reservoir {
    let mut r = Reservoir::default();
    let mut rng = Stream::new(seed, "reservoir");
    values
        .into_iter()
        .for_each(|v| r.push((v, 0), RESERVOIR, &mut rng));
    r
}

#[test]
fn quantiles_are_nearest_ranks() {
    let r = reservoir((0..11).map(|i| 10 * (i * 7 % 11)), 1);
    let found = [0.0, 0.04, 0.06, 0.5, 0.94, 0.96, 1.0].map(|q| r.quantile(q, |v, _| v));
    assert_eq!(found, [0, 0, 10, 50, 90, 100, 100].map(Some));
    assert_eq!(r.quantile(0.5, |v, at| v / 2 + at), Some(25));
    assert_eq!(reservoir([7], 1).quantile(0.5, |v, _| v), Some(7));
    assert_eq!(reservoir([], 1).quantile(0.5, |v, _| v), None);
}

/// The mode lies where most values agree, however far away the others are. Distances are logarithmic.
#[test]
fn the_mode_is_where_most_agree() {
    let mixed = (0..20).map(|i| 10_000 + 10 * i).chain([1, 5, 90, 700]);
    let far = [40_000, 90_000, 300_000, 4_000_000, 4_100_000];
    let mode = reservoir(mixed.chain(far), 1).mode(0).expect("a mode");
    assert!((10_000..10_200).contains(&mode), "{mode}");
    // For two values it is their geometric mean.
    assert_eq!(reservoir([100, 400], 1).mode(0), Some(200));
    // 100 and 150 are further apart, as a ratio, than 10 000 and 11 000.
    assert_eq!(
        reservoir([100, 150, 10_000, 11_000], 1).mode(0),
        Some(10_488)
    );
    assert_eq!(reservoir([9], 1).mode(0), Some(9));
    assert_eq!(reservoir([0, 0, 0], 1).mode(0), Some(1));
    assert_eq!(reservoir([], 1).mode(0), None);
}

/// All values are kept with equal probability.
#[test]
fn what_is_kept_is_a_fair_sample() {
    let (n, seeds) = (640, 300);
    let mut kept = [0u32; 10];
    for seed in 0..seeds {
        let r = reservoir(0..n, seed);
        assert_eq!((r.seen, r.kept.len()), (n, RESERVOIR));
        r.kept
            .iter()
            .for_each(|&(v, _)| kept[(v / 64) as usize] += 1);
    }
    // 64 values in ten bins, 300 times: mean 1920, standard deviation 42.
    assert!(kept.iter().all(|k| k.abs_diff(1_920) < 170), "{kept:?}");
    // If all values fit, all are kept.
    let few: Vec<(u32, u32)> = (0..RESERVOIR as u32).map(|v| (v, 0)).collect();
    assert_eq!(reservoir(few.iter().map(|f| f.0), 1).kept, few);
}

/// With stand-ins, the samples kept of a host do not depend on other hosts.
#[test]
fn stand_ins_are_sampled_by_themselves() {
    let sampled = |others: u64| {
        let mut hosts = Hosts::new(Vec::new());
        let real = hosts.id(IpAddr::from([10, 0, 0, 1]));
        let [a, b] = [0, 1].map(|session| hosts.apart(session, real));
        assert!(a != b && hosts.apart(0, real) == a);
        for i in 0..500 {
            for k in 0..others {
                hosts.sample(b, Sample::Data, 1_000 * k + i, 0);
            }
            hosts.sample(a, Sample::Data, i, 0);
        }
        let own = hosts.measured(a).and_then(|m| m.get(Sample::Data));
        own.expect("samples").kept.clone()
    };
    assert_eq!(sampled(0), sampled(3));
    assert_eq!(sampled(1).len(), RESERVOIR);
}

/// If a flow shows that two groups of hosts lie the other way round, the smaller group changes sides.
#[test]
fn the_smaller_group_changes_sides() {
    for swapped in [false, true] {
        let mut hosts = Hosts::new(Vec::new());
        let [a, b, c, d] = [1u8, 2, 3, 4].map(|i| hosts.id(IpAddr::from([8, 8, i, 1])));
        hosts.across(a, b);
        hosts.across(a, c);
        assert!(hosts.inside(a, true) && hosts.inside(d, true));
        assert!(!hosts.inside(b, true) && !hosts.inside(c, true));
        // A flow between two hosts that are both inside.
        match swapped {
            false => hosts.across(a, d),
            true => hosts.across(d, a),
        }
        assert_eq!((hosts.turned, hosts.conflicts), (1, 0));
        assert!(hosts.inside(a, true) && !hosts.inside(d, true) && !hosts.inside(b, true));
        // The same flow again changes nothing; a flow within a side is a conflict.
        hosts.across(a, d);
        assert_eq!((hosts.turned, hosts.conflicts), (1, 0));
        hosts.across(b, c);
        assert_eq!((hosts.turned, hosts.conflicts), (1, 1));
    }
}
