//! The log-scale diagram against processes with known diagrams.

mod common;

use common::Noise;
use swell_base::Stream;
use swell_stats::energies;

const SAMPLES: usize = 1 << 16;

/// Energies of fractional Gaussian noise grow by 2H - 1 octaves per octave (Abry and Veitch 1998).
#[test]
fn the_diagram_of_fractional_noise_has_its_slope() {
    for hurst in [0.5, 0.7, 0.8, 0.9] {
        let noise = Noise::new(hurst, SAMPLES);
        let mut s = Stream::new(1, &format!("fgn/{hurst}"));
        let slopes: Vec<f64> = (0..50)
            .flat_map(|_| noise.pair(&mut s))
            .map(|path| {
                let octaves = energies(&path, 3);
                // Octaves 4 and 10: 4096 and 64 coefficients.
                (octaves[9].y() - octaves[3].y()) / 6.0
            })
            .collect();
        let error = swell_stats::mean(&slopes).unwrap() - (2.0 * hurst - 1.0);
        let spread = swell_stats::sd(&slopes).unwrap();
        assert!(
            error.abs() < 4.0 * spread / 10.0,
            "H {hurst}: {error} {spread}"
        );
        // sd(y) = 0.258 at 64 coefficients and 0.032 at 4096; the spread of 100 slopes is known to 7 %.
        assert!((0.031..=0.056).contains(&spread), "H {hurst}: {spread}");
    }
}

#[test]
fn the_noise_itself_has_its_covariance() {
    // rho(1) = 2^(2H-1) - 1. Mean of 20 paths; their spread gives the standard error.
    let noise = Noise::new(0.7, 4096);
    let mut s = Stream::new(2, "covariance");
    let lag_one: Vec<f64> = (0..10)
        .flat_map(|_| noise.pair(&mut s))
        .map(|p| p.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / 4095.0)
        .collect();
    let error = swell_stats::mean(&lag_one).unwrap() - (libm::exp2(0.4) - 1.0);
    let standard = swell_stats::sd(&lag_one).unwrap() / 20f64.sqrt();
    assert!(error.abs() < 4.0 * standard, "{error} {standard}");
    assert!(standard < 0.02, "{standard}");
}

#[test]
fn a_trend_is_removed_by_vanishing_moments() {
    // A parabola much larger than the noise: with one moment it dominates, with three it is removed.
    let noise = Noise::new(0.7, SAMPLES);
    let [path, _] = noise.pair(&mut Stream::new(4, "trend"));
    let bent: Vec<f64> = path
        .iter()
        .zip(0u32..)
        .map(|(x, t)| x + 200.0 * (f64::from(t) / SAMPLES as f64).powi(2))
        .collect();
    let apart = |moments| {
        let both = [&path, &bent].map(|x| energies(x, moments));
        let gaps = both[0]
            .iter()
            .zip(&both[1])
            .map(|(a, b)| (a.y() - b.y()).abs());
        gaps.fold(0.0, f64::max)
    };
    assert!(apart(3) < 1e-6, "{}", apart(3));
    assert!(apart(1) > 5.0, "{}", apart(1));
}
