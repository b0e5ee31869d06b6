//! Daubechies wavelets and the pyramid of valid-only convolutions.
//!
//! Source: I. Daubechies, "Ten Lectures on Wavelets" (1992), chapter 6 (spectral factorisation with the roots inside
//! the unit circle); the pyramid is S. Mallat's (1989). Only coefficients whose filter lies wholly inside the data
//! are kept. Nothing is padded, so there are no border effects.
//!
//! Shapes: a filter with N vanishing moments has 2N taps. n samples give floor((n - 2N)/2) + 1 coefficients per step,
//! each from the window that starts at an even index. That is the alignment of PyWavelets' `dwt(mode="zero")`,
//! without its border coefficients. Validation: orthonormality and moments below; PyWavelets in `python-tests`.

/// The largest number of vanishing moments.
const MAX_VANISHING: usize = 10;

type Complex = (f64, f64);

fn mul(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

fn div(a: Complex, b: Complex) -> Complex {
    let n = b.0 * b.0 + b.1 * b.1;
    ((a.0 * b.0 + a.1 * b.1) / n, (a.1 * b.0 - a.0 * b.1) / n)
}

/// The principal square root.
fn sqrt(a: Complex) -> Complex {
    let modulus = (a.0 * a.0 + a.1 * a.1).sqrt();
    let re = ((modulus + a.0) / 2.0).max(0.0).sqrt();
    let im = ((modulus - a.0) / 2.0).max(0.0).sqrt();
    (re, if a.1 < 0.0 { -im } else { im })
}

/// All roots of `sum c_k x^k`, found together by the Durand-Kerner iteration. The polynomials here have simple, well
/// separated roots of modulus below one. 200 iterations are several times the number that the largest needs.
fn roots(c: &[f64]) -> Vec<Complex> {
    let degree = c.len() - 1;
    let leading = c[degree];
    let mut r: Vec<Complex> = Vec::with_capacity(degree);
    let mut start = (1.0, 0.0);
    for _ in 0..degree {
        // The customary start: powers of a number that is neither real nor a root of unity.
        start = mul(start, (0.4, 0.9));
        r.push(start);
    }
    for _ in 0..200 {
        for i in 0..degree {
            let value = c.iter().rev().fold((0.0, 0.0), |v, &k| {
                let p = mul(v, r[i]);
                (p.0 + k / leading, p.1)
            });
            let others = (0..degree).filter(|&j| j != i).fold((1.0, 0.0), |p, j| {
                mul(p, (r[i].0 - r[j].0, r[i].1 - r[j].1))
            });
            let step = div(value, others);
            r[i] = (r[i].0 - step.0, r[i].1 - step.1);
        }
    }
    r
}

/// The scaling (low-pass) filter with `vanishing` vanishing moments, 2N taps and sum sqrt(2), of extremal phase with
/// its energy at the front. `vanishing` is clamped to 1..=[`MAX_VANISHING`].
///
/// |H|^2 = 2 ((1+cos w)/2)^N P((1-cos w)/2) with P(y) = sum_{k<N} C(N-1+k, k) y^k. Each root y of P gives a pair of
/// roots z, 1/z with z + 1/z = 2 - 4y, of which the one inside the unit circle is taken.
fn daubechies(vanishing: usize) -> Vec<f64> {
    let n = vanishing.clamp(1, MAX_VANISHING);
    let mut p = vec![1.0];
    for k in 1..n {
        p.push(p[k - 1] * (n - 1 + k) as f64 / k as f64);
    }
    let mut h: Vec<Complex> = vec![(1.0, 0.0)];
    for y in roots(&p) {
        let u = (1.0 - 2.0 * y.0, -2.0 * y.1);
        let square = mul(u, u);
        let s = sqrt((square.0 - 1.0, square.1));
        let (a, b) = ((u.0 + s.0, u.1 + s.1), (u.0 - s.0, u.1 - s.1));
        let modulus = |z: Complex| z.0 * z.0 + z.1 * z.1;
        let z = if modulus(a) < modulus(b) { a } else { b };
        times(&mut h, (-z.0, -z.1));
    }
    for _ in 0..n {
        times(&mut h, (1.0, 0.0));
    }
    let sum: f64 = h.iter().map(|c| c.0).sum();
    h.iter()
        .map(|c| c.0 / sum * std::f64::consts::SQRT_2)
        .collect()
}

/// Multiplies the polynomial `h` by (1 + z x).
fn times(h: &mut Vec<Complex>, z: Complex) {
    h.push((0.0, 0.0));
    for i in (1..h.len()).rev() {
        let carried = mul(h[i - 1], z);
        h[i] = (h[i].0 + carried.0, h[i].1 + carried.1);
    }
}

/// One step of the pyramid with a filter of L taps: replaces `a` by its approximation and passes every detail
/// coefficient to `each`, in order.
fn step<const L: usize>(a: &mut Vec<f64>, h: &[f64; L], mut each: impl FnMut(f64)) {
    if a.len() < L {
        a.clear();
        return;
    }
    // The wavelet filter is the quadrature mirror: g_m = (-1)^m h_{L-1-m}.
    let g: [f64; L] = std::array::from_fn(|m| {
        if m % 2 == 0 {
            h[L - 1 - m]
        } else {
            -h[L - 1 - m]
        }
    });
    let count = (a.len() - L) / 2 + 1;
    for k in 0..count {
        // In place: window k starts at 2k >= k, so overwritten values have already been read.
        let mut window = [0.0; L];
        window.copy_from_slice(&a[2 * k..2 * k + L]);
        let (mut low, mut high) = (0.0, 0.0);
        for m in 0..L {
            low += h[m] * window[m];
            high += g[m] * window[m];
        }
        a[k] = low;
        each(high);
    }
    a.truncate(count);
}

/// Runs the pyramid over `samples`: calls `each(octave, coefficient)` for all valid detail coefficients, octave 1
/// (the finest) first, in time order within an octave. Time O(n), memory for one copy.
pub(crate) fn pyramid(samples: &[f64], vanishing: usize, mut each: impl FnMut(u32, f64)) {
    let h = daubechies(vanishing);
    let mut a = samples.to_vec();
    let mut j = 1;
    while a.len() >= h.len() {
        // A length known to the compiler lets it unroll the window, which is three times as fast.
        macro_rules! taps {
            ($($l:literal)*) => {
                match h.len() {
                    $($l => {
                        let mut fixed = [0.0; $l];
                        fixed.copy_from_slice(&h);
                        step(&mut a, &fixed, |d| each(j, d));
                    })*
                    _ => a.clear(),
                }
            };
        }
        taps!(2 4 6 8 10 12 14 16 18 20);
        j += 1;
    }
}

/// The valid detail coefficients of every octave, finest first: `details(x, n)[j - 1]` is octave j.
#[cfg(test)]
pub(crate) fn details(samples: &[f64], vanishing: usize) -> Vec<Vec<f64>> {
    let mut octaves: Vec<Vec<f64>> = Vec::new();
    pyramid(samples, vanishing, |j, d| {
        if octaves.len() < j as usize {
            octaves.push(Vec::new());
        }
        octaves[j as usize - 1].push(d);
    });
    octaves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms() {
        let r = 3f64.sqrt();
        let d = 4.0 * std::f64::consts::SQRT_2;
        let want = [(1.0 + r) / d, (3.0 + r) / d, (3.0 - r) / d, (1.0 - r) / d];
        for (a, b) in daubechies(2).iter().zip(want) {
            assert!((a - b).abs() < 1e-15, "{a} {b}");
        }
        assert_eq!(daubechies(1), [std::f64::consts::FRAC_1_SQRT_2; 2]);
        assert_eq!(daubechies(0), daubechies(1));
        assert_eq!(daubechies(99), daubechies(MAX_VANISHING));
    }

    #[test]
    fn shifts_by_two_are_orthonormal_and_moments_vanish() {
        for n in 1..=MAX_VANISHING {
            let h = daubechies(n);
            assert_eq!(h.len(), 2 * n);
            for shift in 0..n {
                let dot: f64 = h[2 * shift..].iter().zip(&h).map(|(a, b)| a * b).sum();
                let want = f64::from(u8::from(shift == 0));
                assert!((dot - want).abs() < 1e-12, "db{n}, shift {shift}: {dot}");
            }
            // Moments about the middle keep the powers small, because rounding errors grow with their size.
            for power in 0..n {
                let (moment, size) = (0..2 * n).fold((0.0, 0.0), |(sum, size), m| {
                    let x = ((m as f64 + 0.5) / n as f64 - 1.0).powi(power as i32);
                    let sign = if m % 2 == 0 { 1.0 } else { -1.0 };
                    let term = sign * h[2 * n - 1 - m] * x;
                    (sum + term, size + f64::abs(term))
                });
                assert!(
                    moment.abs() < 1e-11 * size,
                    "db{n}, moment {power}: {moment} of {size}"
                );
            }
        }
    }

    #[test]
    fn polynomials_below_the_vanishing_moments_leave_no_detail() {
        for n in 1..=4usize {
            let x: Vec<f64> = (0..300)
                .map(|t| (f64::from(t) / 300.0).powi(n as i32 - 1))
                .collect();
            let all = details(&x, n);
            assert!(all.len() > 2);
            for d in all.iter().flatten() {
                // Approximations grow by sqrt(2) per octave, to at most 2^4 here.
                assert!(d.abs() < 1e-12 * 16.0, "db{n}: {d}");
            }
        }
    }

    #[test]
    fn only_windows_inside_the_data_count() {
        assert_eq!(details(&[1.0; 5], 3), Vec::<Vec<f64>>::new());
        let lengths: Vec<usize> = details(&[1.0; 50], 3).iter().map(Vec::len).collect();
        // 50 -> (50-6)/2+1 = 23 -> 9 -> 2, which is too short for another step.
        assert_eq!(lengths, [23, 9, 2]);
        let haar = details(&[1.0, 3.0, 5.0, 5.0, 9.0], 1);
        let s = std::f64::consts::SQRT_2;
        for (a, b) in haar.iter().flatten().zip([-2.0 / s, 0.0, -3.0]) {
            assert!((a - b).abs() < 1e-14, "{haar:?}");
        }
    }
}
