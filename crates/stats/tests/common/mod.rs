//! Exact fractional Gaussian noise, for tests.
//!
//! Circulant embedding: R. B. Davies, D. S. Harte, Biometrika 74 (1987); C. R. Dietrich, G. N. Newsam, SIAM
//! J. Sci. Comput. 18 (1997) for the two independent paths in the real and the imaginary part. The
//! embedding of fGn is non-negative definite for every H (A. T. A. Wood, G. Chan; P. F. Craigmile 2003).

use swell_base::Stream;

/// A generator for paths of `n` (a power of two) unit-variance samples with Hurst parameter `hurst`.
pub struct Noise {
    /// sqrt(eigenvalue / 2n) of the circulant of size 2n.
    scale: Vec<f64>,
    twiddles: Vec<(f64, f64)>,
}

impl Noise {
    pub fn new(hurst: f64, n: usize) -> Noise {
        assert!(n.is_power_of_two());
        let m = 2 * n;
        let twiddles: Vec<(f64, f64)> = (0..n)
            .map(|k| {
                let angle = -std::f64::consts::TAU * k as f64 / m as f64;
                (libm::cos(angle), libm::sin(angle))
            })
            .collect();
        let power = |x: f64| libm::pow(x.abs(), 2.0 * hurst);
        let covariance = |k: f64| (power(k + 1.0) - 2.0 * power(k) + power(k - 1.0)) / 2.0;
        let mut row: Vec<(f64, f64)> = (0..m)
            .map(|i| (covariance(i.min(m - i) as f64), 0.0))
            .collect();
        transform(&mut row, &twiddles);
        let scale = row
            .iter()
            .map(|&(eigenvalue, _)| {
                assert!(eigenvalue > -1e-9, "the embedding is non-negative definite");
                (eigenvalue.max(0.0) / m as f64).sqrt()
            })
            .collect();
        Noise { scale, twiddles }
    }

    /// Two independent paths.
    pub fn pair(&self, s: &mut Stream) -> [Vec<f64>; 2] {
        let mut z: Vec<(f64, f64)> = self
            .scale
            .iter()
            .map(|a| {
                let (x, y) = normal_pair(s);
                (a * x, a * y)
            })
            .collect();
        transform(&mut z, &self.twiddles);
        z.truncate(self.scale.len() / 2);
        [
            z.iter().map(|c| c.0).collect(),
            z.iter().map(|c| c.1).collect(),
        ]
    }
}

/// Two independent standard normal variables (Box and Muller).
pub fn normal_pair(s: &mut Stream) -> (f64, f64) {
    let r = (-2.0 * libm::log(1.0 - s.uniform())).sqrt();
    let (sin, cos) = libm::sincos(std::f64::consts::TAU * s.uniform());
    (r * cos, r * sin)
}

/// The discrete Fourier transform in place, radix two (J. W. Cooley, J. W. Tukey 1965).
fn transform(z: &mut [(f64, f64)], twiddles: &[(f64, f64)]) {
    let n = z.len();
    let bits = n.trailing_zeros();
    for i in 0..n {
        let j = i.reverse_bits() >> (usize::BITS - bits);
        if i < j {
            z.swap(i, j);
        }
    }
    let mut half = 1;
    while half < n {
        let stride = n / (2 * half);
        for block in z.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for k in 0..half {
                let (wr, wi) = twiddles[k * stride];
                let (a, b) = (low[k], high[k]);
                let t = (b.0 * wr - b.1 * wi, b.0 * wi + b.1 * wr);
                low[k] = (a.0 + t.0, a.1 + t.1);
                high[k] = (a.0 - t.0, a.1 - t.1);
            }
        }
        half *= 2;
    }
}
