use proptest::prelude::*;
use swell_base::Stream;

use super::search::{LEAP, PROPORTIONAL, ROUNDS, Try};
use super::*;
use crate::backend::{MeasuredRates, Offered};

fn codes(m: &Measured) -> Vec<String> {
    doubts::of_rates("x", m)
        .into_iter()
        .map(|d| d.code.to_string())
        .collect()
}

#[test]
fn measured_rates_are_doubted_where_they_should_be() {
    let fine = Measured {
        up_bps: 1e6,
        down_bps: 8e6,
        down_bps_each: vec![7e6, 8.7e6],
        target_bps: Some(8e6),
        sessions: Some(9.9),
        ..Measured::default()
    };
    assert_eq!(codes(&fine), Vec::<String>::new());
    let up = Measured {
        up_bps: 8.1e6,
        ..fine.clone()
    };
    assert_eq!(codes(&up), ["up-exceeds-down"]);
    // A background that is not scaled may have any direction.
    let native = Measured {
        target_bps: None,
        ..up
    };
    assert_eq!(codes(&native), Vec::<String>::new());
    let many = Measured {
        sessions: Some(10.1),
        ..fine.clone()
    };
    assert_eq!(codes(&many), ["many-copies"]);
    let uneven = Measured {
        down_bps_each: vec![7e6, 8.8e6],
        ..fine
    };
    assert_eq!(codes(&uneven), ["uneven-seeds"]);
}

/// About normal, of variance 1.
fn normal(rng: &mut Stream) -> f64 {
    (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0
}

/// A model of a network for the search: `own` bits per second per session, draws that vary by `spread`, and the carried
/// rate as a function of the offered one.
struct Plant {
    own: f64,
    spread: f64,
    noise: f64,
    carried: fn(f64) -> f64,
}

impl Plant {
    /// Searches for `target` like a run, starting with the model's own rate. Returns the search and its best try.
    fn search(&self, target: f64, pieces: usize, seed: u64) -> (Search, Try) {
        let mut rng = Stream::new(seed, "plant");
        let mut search = Search::new(Some(target), Some(target / self.own));
        for _ in 0..ROUNDS {
            if search.done {
                break;
            }
            let mean = self.own * search.pace.unwrap();
            let mut piece = |_| {
                let drawn = mean * (self.spread * normal(&mut rng)).exp();
                let carried = (self.carried)(drawn) * (self.noise * normal(&mut rng)).exp();
                Piece {
                    replication: 0,
                    carried: MeasuredRates {
                        up_bps: 0.0,
                        down_bps: carried,
                        lost: 0.0,
                    },
                    offered: Some(Offered {
                        mean: [0.0, mean],
                        drawn: [0.0, drawn],
                    }),
                }
            };
            let all: Vec<Piece> = (0..pieces).map(&mut piece).collect();
            search.learn(&all);
        }
        let best = search.best().unwrap();
        (search, best)
    }
}

#[test]
fn draws_that_scatter_do_not_move_the_scale() {
    // A network that carries everything, and seeds with loads that differ by a factor of three or more.
    let plant = Plant {
        own: 1e6,
        spread: 0.6,
        noise: 0.0,
        carried: |x| x,
    };
    for seed in 0..200 {
        let (search, best) = plant.search(8e6, 1, seed);
        assert_eq!(search.tried.len(), 1);
        assert!((best.pace.unwrap() - 8.0).abs() < 1e-9, "{best:?}");
    }
}

#[test]
fn what_comes_later_does_not_move_the_scale() {
    // Pieces carry five percent less or more than offered, with noise.
    let pieces: [fn(f64) -> f64; 2] = [|x| 0.95 * x, |x| 1.05 * x];
    for carried in pieces {
        let plant = Plant {
            own: 1e6,
            spread: 0.3,
            noise: 0.01,
            carried,
        };
        for seed in 0..100 {
            let (_, best) = plant.search(8e6, 3, seed);
            assert!((best.pace.unwrap() - 8.0).abs() < 1e-9, "{best:?}");
        }
    }
}

#[test]
fn noise_of_a_piece_moves_the_scale_by_no_more_than_itself() {
    // A network that loses a fifth.
    let plant = Plant {
        own: 1e6,
        spread: 0.3,
        noise: 0.03,
        carried: |x| 0.8 * x,
    };
    let found: Vec<f64> = (0..300)
        .map(|seed| plant.search(8e6, 3, seed).1.pace.unwrap() * 0.8 / 8.0)
        .collect();
    let mean = found.iter().sum::<f64>() / 300.0;
    assert!((mean - 1.0).abs() < 0.01, "{mean}");
    let worst = found.iter().map(|x| (x - 1.0).abs()).fold(0.0, f64::max);
    assert!(worst < 0.08, "{worst}");
}

#[test]
fn a_full_network_ends_the_search_with_a_doubt_and_no_crowd() {
    let plant = Plant {
        own: 1e6,
        spread: 0.2,
        noise: 0.01,
        carried: |x| x.min(5e6),
    };
    for seed in 0..100 {
        let (search, best) = plant.search(8e6, 3, seed);
        // It offers the requested rate, and no more.
        assert_eq!(best.pace, Some(8.0));
        let doubt = doubts::missed("x", &search, &best).unwrap();
        assert!(
            doubt.message.contains("carries no more"),
            "{}",
            doubt.message
        );
    }
}

/// A piece that carried this rate down.
fn carried(down_bps: f64) -> Piece {
    Piece {
        replication: 0,
        carried: MeasuredRates {
            up_bps: 0.0,
            down_bps,
            lost: 0.0,
        },
        offered: None,
    }
}

/// Numbers of sessions that carry now too much and now too little do not show a full network.
#[test]
fn a_rate_between_two_tries_does_not_blame_the_network() {
    let mut search = Search::new(Some(8e6), Some(1.0));
    for down_bps in [12e6, 5e6, 6e6] {
        search.learn(&[carried(down_bps)]);
    }
    let best = search.best().unwrap();
    assert_eq!(best.rate, [0.0, 6e6]);
    let doubt = doubts::missed("x", &search, &best).unwrap();
    assert!(doubt.message.contains("no other try"), "{}", doubt.message);
}

/// The rounds end while more sessions still carry more.
#[test]
fn a_search_that_ends_too_early_has_its_nearest_try() {
    let plant = Plant {
        own: 1e6,
        spread: 0.0,
        noise: 0.0,
        carried: |x| (x * 0.5e6).sqrt(),
    };
    let (search, best) = plant.search(8e6, 1, 1);
    assert_eq!(search.tried.len(), ROUNDS);
    assert!(best.pace > search.tried[0].pace, "{best:?}");
    let doubt = doubts::missed("x", &search, &best).unwrap();
    assert!(doubt.message.contains("too short"), "{}", doubt.message);
}

#[test]
fn a_silent_network_ends_the_search_at_once() {
    let plant = Plant {
        own: 1e6,
        spread: 0.2,
        noise: 0.0,
        carried: |_| 0.0,
    };
    let (search, best) = plant.search(8e6, 3, 1);
    assert_eq!(search.tried.len(), 1);
    assert_eq!(best.pace, Some(8.0));
    let doubt = doubts::missed("x", &search, &best).unwrap();
    assert!(
        doubt.message.contains("nothing came through"),
        "{}",
        doubt.message
    );
}

/// Draws that offer almost nothing in their pieces do not show that nothing comes through.
#[test]
fn a_quiet_draw_does_not_blame_the_network() {
    let seen = |drawn: f64| {
        let mut search = Search::new(Some(8e6), Some(8.0));
        search.learn(&[Piece {
            replication: 0,
            carried: MeasuredRates {
                up_bps: 0.0,
                down_bps: 0.0,
                lost: 0.0,
            },
            offered: Some(Offered {
                mean: [0.0, 8e6],
                drawn: [0.0, drawn],
            }),
        }]);
        let best = search.best().unwrap();
        doubts::missed("x", &search, &best).map(|doubt| doubt.message)
    };
    assert_eq!(seen(1e6), None);
    let doubt = seen(2e6).unwrap();
    assert!(doubt.contains("nothing came through"), "{doubt}");
}

/// Runs that begin without sessions offer a tenth of the mean, and ten times as many sessions offer it.
#[test]
fn a_rate_that_grows_in_proportion_is_reached_by_a_leap() {
    let plant = Plant {
        own: 1e6,
        spread: 0.0,
        noise: 0.0,
        carried: |x| 0.1 * x,
    };
    let (search, best) = plant.search(8e6, 1, 1);
    let paces: Vec<f64> = search.tried.iter().filter_map(|t| t.pace).collect();
    assert_eq!(paces[..2], [8.0, 16.0]);
    assert!((best.pace.unwrap() - 80.0).abs() < 1e-6, "{best:?}");
    assert_eq!(doubts::missed("x", &search, &best), None);
}

#[test]
fn a_search_makes_no_more_than_its_most_copies() {
    let mut search = Search {
        most: 100.0,
        ..Search::new(Some(8e6), Some(80.0))
    };
    for down_bps in [4e6, 5e6] {
        assert!(!search.done);
        search.learn(&[carried(down_bps)]);
    }
    // A third try would be the second one again.
    assert!(search.done);
    let best = search.best().unwrap();
    assert_eq!(best.pace, Some(100.0));
    let doubt = doubts::missed("x", &search, &best).unwrap();
    assert!(doubt.message.contains("100 copies"), "{}", doubt.message);
}

#[test]
fn an_offered_rate_is_not_searched() {
    let mut search = Search {
        offered: true,
        closed: false,
        ..Search::new(Some(8e6), Some(8.0))
    };
    search.learn(&[Piece {
        replication: 0,
        carried: MeasuredRates {
            up_bps: 0.0,
            down_bps: 5e6,
            lost: 0.3,
        },
        offered: Some(Offered {
            mean: [0.0, 8e6],
            drawn: [0.0, 8e6],
        }),
    }]);
    assert!(search.done);
    let best = search.best().unwrap();
    assert_eq!(best.pace, Some(8.0));
    let said = |rate| {
        let best = Try {
            rate: [0.0, rate],
            ..best.clone()
        };
        doubts::missed("x", &search, &best).unwrap().message
    };
    assert!(said(5e6).contains("does not offer more"), "{}", said(5e6));
    assert!(said(11e6).contains("too much"), "{}", said(11e6));
}

proptest! {
    /// For any measurements, a search takes finite, positive scales within its maximum steps. Only what grows in
    /// proportion takes longer ones.
    #[test]
    fn a_search_stays_within_its_leaps(
        seen in proptest::collection::vec(0.0..1e9f64, ROUNDS),
        drawn in 0.0..1e9f64,
        target in 1e3..1e9f64,
    ) {
        let mut search = Search::new(Some(target), Some(1.0));
        for down_bps in seen {
            if search.done {
                break;
            }
            let carried = MeasuredRates { up_bps: 0.0, down_bps, lost: 0.0 };
            let offered = Some(Offered { mean: [0.0, 1e6], drawn: [0.0, drawn] });
            search.learn(&[Piece { replication: 0, carried, offered }]);
        }
        let tried: Vec<(f64, f64)> =
            search.tried.iter().map(|t| (t.pace.unwrap(), t.rate[1])).collect();
        for (i, &(pace, _)) in tried.iter().enumerate().skip(1) {
            prop_assert!(pace.is_finite() && pace > 0.0, "{tried:?}");
            let step = pace / tried[i - 1].0;
            let grown = i > 1 && {
                let [(a, before), (b, now)] = [tried[i - 2], tried[i - 1]];
                ((now / before - 1.0) / (b / a - 1.0) - 1.0).abs() <= PROPORTIONAL
            };
            let within = (1.0 / LEAP - 1e-9..=LEAP + 1e-9).contains(&step);
            prop_assert!(within || grown, "{tried:?}");
        }
    }
}
