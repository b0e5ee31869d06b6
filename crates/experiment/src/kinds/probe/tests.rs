//! What tools conclude of delays that are made up.

use super::chirp::chirp;
use super::pathload::{Trend, trend};

#[test]
fn delays_that_rise_are_told_from_those_that_do_not() {
    let mut rng = swell_base::Stream::new(1, "trend");
    let mut of = |slope: f64| -> Vec<f64> {
        (0..100)
            .map(|i| slope * f64::from(i) + 1e-4 * rng.uniform())
            .collect()
    };
    assert_eq!(trend(&of(1e-5)), Some(Trend::Rising));
    let turns: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
    assert_eq!(trend(&turns), Some(Trend::Flat));
    assert_eq!(trend(&of(-1e-5)), Some(Trend::Flat));
    assert_eq!(trend(&[0.0; 100]), Some(Trend::Flat));
    assert_eq!(trend(&[0.0; 30]), None);
}

/// Delays that rise for good from one rate on: that rate is what is free. Delays that never rise: at least the highest.
#[test]
fn a_chirp_is_free_up_to_where_delays_rise_for_good() {
    let rates: Vec<f64> = (0..12).map(|k| 10e6 * 1.2f64.powi(k)).collect();
    let mut delays = vec![0.0; 8];
    delays.extend([1.0, 2.0, 3.0, 4.0, 5.0]);
    assert!((chirp(&delays, &rates) / rates[7] - 1.0).abs() < 1e-9);
    let rounded: Vec<f64> = (0..13).map(|i| 1e-9 * f64::from(i)).collect();
    assert!((chirp(&rounded, &rates) / rates[11] - 1.0).abs() < 1e-9);
    assert!((chirp(&[0.0; 13], &rates) / rates[11] - 1.0).abs() < 1e-9);
}
