use super::*;
use crate::testing::{any_model, model, session};
use proptest::prelude::*;

#[test]
fn weights_count() {
    let s = Sample::new(vec![(3.0, 1.0), (1.0, 2.0), (f64::NAN, 1.0), (2.0, 1.0)]);
    assert_eq!((s.len(), s.total()), (3, 4.0));
    assert_eq!(s.quantile(0.5), Some(1.0));
    assert_eq!(s.quantile(0.51), Some(2.0));
    assert_eq!(s.quantile(1.0), Some(3.0));
    assert_eq!(s.mean(), Some(7.0 / 4.0));
    assert_eq!(Sample::default().quantile(0.5), None);
}

#[test]
fn quantities_by_class() {
    let m = model(
        Dur::from_secs(10),
        vec![
            session(0, Dur::ZERO, 1_000),
            session(1, Dur::ZERO, 2_000),
            session(1, Dur::ZERO, 8_000),
        ],
    );
    let x = Marginals::of(&m);
    assert_eq!(
        x.get("", Quantity::Response).unwrap().quantile(0.5),
        Some(2_000.0)
    );
    assert_eq!(
        x.get("http", Quantity::Response).unwrap().mean(),
        Some(1_000.0)
    );
    assert_eq!(
        x.get("https", Quantity::ServerThink).unwrap().mean(),
        Some(0.02)
    );
    assert_eq!(x.get("dns", Quantity::Response), None);
    assert_eq!(x.sessions[1], ("https".to_string(), 2.0));
}

#[test]
fn doubled_responses_are_an_octave_away() {
    let m = model(
        Dur::from_secs(10),
        (0..50)
            .map(|i| session(0, Dur::ZERO, 1_000 + i * 100))
            .collect(),
    );
    let knobs = crate::Knobs {
        response: 2.0,
        ..crate::Knobs::default()
    };
    let d = Marginals::of(&m).distances(&Marginals::of(&m.varied(&knobs, 1)));
    let of = |q| {
        d.iter()
            .find(|d| d.class == "http" && d.quantity == q)
            .unwrap()
    };
    assert!((of(Quantity::Response).octaves.unwrap() - 1.0).abs() < 1e-9);
    assert_eq!(of(Quantity::Request).ks, 0.0);
}

proptest! {
    #[test]
    fn a_model_is_no_distance_from_itself(m in any_model()) {
        let x = Marginals::of(&m);
        for d in x.distances(&x) {
            prop_assert_eq!(d.ks, 0.0);
            prop_assert!(d.octaves.unwrap_or(0.0) == 0.0);
        }
    }
}

/// A run names any number of datagrams. The first million of a flow stand for all.
#[test]
fn long_runs_are_walked_only_so_far() {
    let run = |bytes: u32| crate::Run {
        packets: 1 << 20,
        bytes: u64::from(bytes) << 20,
        sizes: [bytes; 2],
        ..crate::Run::default()
    };
    let mut m = model(Dur::from_secs(10), vec![session(2, Dur::ZERO, 0)]);
    m.sessions[0].groups[0].connections[0].exchange =
        crate::Exchange::Datagrams(crate::Datagrams {
            packets: Vec::new(),
            runs: [vec![run(100), run(200)], Vec::new()],
        });
    let x = Marginals::of(&m);
    let sizes = x.get("", Quantity::Datagram).unwrap();
    assert_eq!(sizes.quantile(1.0), Some(100.0));
}

/// A flow of many datagrams is not worth less than its number.
#[test]
fn a_median_datagram_is_that_of_all() {
    let flow = |bytes: u32, n: usize| {
        let mut s = session(2, Dur::ZERO, 0);
        s.groups[0].connections[0].exchange = crate::Exchange::Datagrams(crate::Datagrams {
            packets: vec![(Dur::from_millis(u64::from(bytes)), true, bytes); n],
            ..crate::Datagrams::default()
        });
        s
    };
    let m = model(
        Dur::from_secs(10),
        vec![flow(100, 5_000), flow(40, 600), flow(40, 600)],
    );
    let x = Marginals::of(&m);
    let sizes = x.get("dns", Quantity::Datagram).unwrap();
    assert!((sizes.total() - 6_200.0).abs() < 1e-6, "{}", sizes.total());
    assert_eq!(sizes.quantile(0.5), Some(100.0));
    let gaps = x.get("dns", Quantity::DatagramGap).unwrap();
    assert_eq!(gaps.quantile(0.5), Some(0.1));
}

#[test]
fn a_distribution_is_made_of_quantiles() {
    let mut rng = swell_base::Stream::new(1, "points");
    let points = (0..300).map(|_| ((rng.uniform() * 40.0).floor(), rng.uniform() * 3.0));
    let s = Sample::new(points.collect());
    let one_by_one = (0..500).filter_map(|i| s.quantile((f64::from(i) + 0.5) / 500.0));
    assert_eq!(s.ecdf(500), swell_stats::Ecdf::new(one_by_one.collect()));
}
