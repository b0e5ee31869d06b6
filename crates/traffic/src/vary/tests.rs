use super::*;
use crate::testing::{PATH, model, session};
use crate::{Marginals, Quantity};

/// Two hundred sessions in two classes; responses are a function of the requests.
fn dependent() -> Model {
    let mut m = model(
        Dur::from_secs(10),
        (0..200)
            .map(|i| session((i % 2) as u32, Dur::from_millis(i), 10))
            .collect(),
    );
    m.client_paths = (1..=200)
        .map(|i| Path {
            rtt: Dur::from_millis(i),
            up: Some(Rate::from_bps(1_000_000 * i)),
            ..PATH
        })
        .collect();
    for (i, s) in (0..).zip(&mut m.sessions) {
        s.client = i;
        if let Exchange::Sequential(turns) = &mut s.groups[0].connections[0].exchange {
            turns[0].request = 100 + u64::from(i);
            turns[0].response = turns[0].request * 10;
            turns[0].server_think = Dur::from_millis(turns[0].request);
        }
    }
    m
}

fn turns(m: &Model) -> Vec<(u32, crate::Turn)> {
    m.sessions
        .iter()
        .flat_map(|s| s.connections().map(move |c| (s.class, c)))
        .flat_map(|(class, c)| match &c.exchange {
            Exchange::Sequential(t) => t.iter().map(move |t| (class, *t)).collect(),
            _ => Vec::new(),
        })
        .collect()
}

fn without(dependency: Dependency) -> Model {
    let knobs = Knobs {
        independent: vec![dependency],
        ..Knobs::default()
    };
    let m = dependent().varied(&knobs, 5);
    assert!(m.check().is_ok());
    m
}

#[test]
fn marginals_stay_when_a_dependency_goes() {
    let whole = Marginals::of(&dependent());
    for (dependency, name) in Dependency::ALL {
        let m = without(dependency);
        assert_ne!(m, dependent(), "{name} changed nothing");
        for d in whole.distances(&Marginals::of(&m)) {
            let across =
                dependency == Dependency::SizeOnClass || dependency == Dependency::PathOnUser;
            // A connection's bytes sum quantities that depend on each other, so they are not a marginal.
            if d.quantity == Quantity::ConnectionBytes {
                continue;
            }
            if d.class.is_empty() || !across {
                assert_eq!(d.ks, 0.0, "{name} changed {} {}", d.class, d.quantity);
            }
        }
    }
}

#[test]
fn each_dependency_is_the_one_that_goes() {
    let holds = |m: &Model, law: fn(&(u32, crate::Turn)) -> bool| {
        turns(m).iter().filter(|t| law(t)).count()
    };
    let response = |t: &(u32, crate::Turn)| t.1.response == 10 * t.1.request;
    let think = |t: &(u32, crate::Turn)| t.1.server_think == Dur::from_millis(t.1.request);
    let class = |t: &(u32, crate::Turn)| t.1.request % 2 == u64::from(t.0);
    // A permutation of 100 or 200 leaves one in place on average (Poisson).
    let few = 8;
    let by_request = without(Dependency::ResponseOnRequest);
    assert!(holds(&by_request, response) < few);
    assert!(holds(&by_request, think) == 200 && holds(&by_request, class) == 200);
    let by_size = without(Dependency::ThinkOnSize);
    assert!(holds(&by_size, response) == 200 && holds(&by_size, think) < few);
    let by_class = without(Dependency::SizeOnClass);
    assert!(holds(&by_class, response) == 200);
    assert!((60..140).contains(&holds(&by_class, class)));
    let by_session = without(Dependency::WithinSession);
    assert!(holds(&by_session, response) == 200 && holds(&by_session, think) == 200);
    let by_user = without(Dependency::PathOnUser);
    let kept = (0..).zip(&by_user.sessions).filter(|(i, s)| s.client == *i);
    assert!(kept.count() < few);
    let by_rtt = without(Dependency::CapacityOnRtt);
    let same = |p: &&Path| p.up == Some(Rate::from_bps(p.rtt.as_nanos()));
    assert!(by_rtt.client_paths.iter().filter(same).count() < few);
}

#[test]
fn knobs_do_what_they_say() {
    let knobs = Knobs {
        response: 4.0,
        request: 0.5,
        think: 0.0,
        rtt: Some(Dur::from_millis(4)),
        access: Some(Rate::from_bps(2_000_000)),
        ..Knobs::default()
    };
    let (was, m) = (dependent(), dependent().varied(&knobs, 1));
    for ((_, a), (_, b)) in turns(&was).iter().zip(&turns(&m)) {
        assert_eq!(b.response, 4 * a.response);
        assert_eq!(b.request, (a.request as f64 / 2.0).round() as u64);
        assert_eq!(b.server_think, a.server_think);
    }
    let rtts = Marginals::of(&m);
    let max = |q| rtts.get("", q).unwrap().quantile(1.0);
    assert_eq!(max(Quantity::ClientRtt), Some(0.004));
    assert_eq!(max(Quantity::ServerRtt), Some(0.0));
    assert_eq!(max(Quantity::ServerUp), Some(2e6));
    assert_eq!(dependent().varied(&Knobs::default(), 1), dependent());
}

/// Progress is counted in units of an exchange, so it is permuted with the exchange.
#[test]
fn progress_stays_with_its_exchange() {
    let mut m = dependent();
    for (i, s) in m.sessions.iter_mut().enumerate() {
        let last = s.groups[0].clone();
        let c = &mut s.groups[0].connections[0];
        let turns = 2 + i % 5;
        c.exchange = Exchange::Sequential(vec![crate::Turn::default(); turns]);
        c.overlap = Some([turns as u32; 2]);
        s.groups.push(last);
    }
    assert!(m.check().is_ok());
    let knobs = Knobs {
        independent: vec![Dependency::WithinSession],
        ..Knobs::default()
    };
    let varied = m.varied(&knobs, 5);
    assert!(varied.check().is_ok(), "{:?}", varied.check());
    for s in &varied.sessions {
        let [first, last] = [0, 1].map(|g| &s.groups[g].connections[0]);
        let units = first.exchange.units()[0];
        // An exchange of one turn comes from a last group, where nothing waited for it.
        assert_eq!(first.overlap, (units > 1).then_some([units as u32; 2]));
        assert_eq!(last.overlap, None);
    }
}

/// Few large exchanges are held for themselves; small ones stand for forty each. A draw by number alone would carry
/// thirteen times as much.
#[test]
fn a_thinned_model_keeps_its_load() {
    let mut m = dependent();
    for (i, s) in m.sessions.iter_mut().enumerate() {
        let large = i % 20 < 2;
        s.weight = if large { 1.0 } else { 40.0 };
        if let Exchange::Sequential(turns) = &mut s.groups[0].connections[0].exchange {
            turns[0].response = if large { 1_000_000 } else { 1_000 } + i as u64;
        }
    }
    let carried = |of: &Model| {
        let bytes = of.sessions.iter().map(|s| {
            let [up, down] = s.groups[0].connections[0].exchange.bytes();
            s.weight * (up + down) as f64
        });
        bytes.sum::<f64>()
    };
    let was = carried(&m);
    let of = |dependency, seeds| {
        let knobs = Knobs {
            independent: vec![dependency],
            ..Knobs::default()
        };
        let varied = (0..seeds).map(|seed| m.varied(&knobs, seed));
        varied.map(|v| carried(&v) / was).collect::<Vec<_>>()
    };
    for dependency in [
        Dependency::ResponseOnRequest,
        Dependency::SizeOnClass,
        Dependency::WithinSession,
    ] {
        // The load is kept on average over seeds, not in each: a large value at a place of weight 40 is a large part.
        let factors = of(dependency, 400);
        let mean = factors.iter().sum::<f64>() / factors.len() as f64;
        assert!((0.85..1.15).contains(&mean), "{dependency:?}: {mean}");
    }
    for dependency in [Dependency::PathOnUser, Dependency::CapacityOnRtt] {
        assert_eq!(of(dependency, 40), [1.0; 40], "{dependency:?}");
    }
}

/// The shares of values drawn are those of their weights, and each place takes any of them.
#[test]
fn values_are_drawn_by_weight() {
    let weights = [1.0, 9.0, 5.0, 5.0];
    let (mut counts, draws) = ([[0u32; 4]; 4], 20_000);
    let mut rng = Stream::new(3, "draws");
    for _ in 0..draws {
        let values = weights.into_iter().zip(0..4u64).collect();
        for (place, value) in redrawn(values, &mut rng, |&v| v).into_iter().enumerate() {
            counts[place][value as usize] += 1;
        }
    }
    for row in counts {
        for (count, weight) in row.into_iter().zip(weights) {
            let (share, p) = (f64::from(count) / f64::from(draws), weight / 20.0);
            let error = (p * (1.0 - p) / f64::from(draws)).sqrt();
            assert!((share - p).abs() < 4.0 * error, "{counts:?}");
        }
    }
}

/// A turn without a response has no server think, and the last turn of a connection no client think.
#[test]
fn think_times_without_effect_take_no_part() {
    let mut m = dependent();
    for (i, s) in (0..).zip(&mut m.sessions) {
        let turn = |response, server, client| crate::Turn {
            request: 100,
            response,
            server_think: Dur::from_millis(server),
            client_think: Dur::from_millis(client),
        };
        let turns = vec![turn(0, 0, 5_000 + i), turn(10, 1_000 + i, 0)];
        s.groups[0].connections[0].exchange = Exchange::Sequential(turns);
    }
    let knobs = Knobs {
        independent: vec![Dependency::ThinkOnSize, Dependency::SizeOnClass],
        ..Knobs::default()
    };
    let varied = m.varied(&knobs, 5);
    assert_ne!(varied, m);
    for (_, pair) in turns(&varied).chunks(2).map(|p| (p[0].0, [p[0].1, p[1].1])) {
        assert_eq!((pair[0].response, pair[1].response), (0, 10));
        assert!(pair[0].client_think >= Dur::from_secs(5), "{pair:?}");
        assert!(pair[1].server_think >= Dur::from_secs(1), "{pair:?}");
        let none = [pair[0].server_think, pair[1].client_think];
        assert_eq!(none, [Dur::ZERO; 2]);
    }
}
