//! Time per call of the functions that process long series: `cargo bench -p swell-stats`.
#![expect(clippy::print_stdout, reason = "the output of a program")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use swell_base::Stream;
use swell_stats::{Bootstrap, Pairing, Replications, Sketch, energies};

fn main() {
    let mut s = Stream::new(1, "bench");
    let series: Vec<f64> = (0..1 << 20).map(|_| s.exponential(1.0)).collect();
    for vanishing in [1, 3, 6, 10] {
        best(
            &format!("energies, 2^20 samples, db{vanishing}, all octaves"),
            || {
                black_box(energies(black_box(&series), vanishing));
            },
        );
    }
    let groups: Vec<Vec<f64>> = series[..10_000].chunks(1000).map(<[f64]>::to_vec).collect();
    let runs = Replications::new(&groups);
    best(
        "slowdown at 4 percentiles, 10 + 10 runs of 1000, 2000 resamples",
        || {
            let ps = [0.05, 0.5, 0.9, 0.95];
            let made = Bootstrap::seeded(1).slowdown(black_box(&runs), &runs, &ps, Pairing::Paired);
            assert!(black_box(made).is_ok());
        },
    );
    best("sketch, 2^20 values", || {
        let mut sketch = Sketch::new();
        for &x in black_box(&series) {
            sketch.add(x);
        }
        black_box(sketch);
    });
}

/// Prints the shortest of ten calls: the cost without interference.
fn best(what: &str, mut f: impl FnMut()) {
    let shortest = (0..10)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed()
        })
        .min()
        .unwrap_or_default();
    println!("{what}: {:.2} ms", shortest.as_secs_f64() * 1e3);
}
