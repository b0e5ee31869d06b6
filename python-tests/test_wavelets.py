"""Checks swell-stats against PyWavelets, NumPy and SciPy, which share no code with it.

    python3 -m venv venv && venv/bin/pip install -r python-tests/requirements.txt
    venv/bin/pytest python-tests

Builds the example `energies` with cargo (into CARGO_TARGET_DIR if that is set) and feeds it samples.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import pywt
import scipy.special
import scipy.stats

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def program():
    cargo = ["cargo", "build", "-q", "--release", "-p", "swell-stats", "--example", "energies"]
    subprocess.run(cargo, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR") or "target")
    binary = ROOT / target / "release" / "examples" / "energies"

    def run(*arguments, samples):
        text = "\n".join(repr(float(x)) for x in samples)
        done = subprocess.run(
            [binary, *map(str, arguments)], input=text, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    return run


def fractional_noise(hurst, n, rng):
    """Fractional Gaussian noise by circulant embedding (Davies & Harte 1987)."""
    k = np.arange(n + 1.0)
    power = lambda x: np.abs(x) ** (2 * hurst)
    covariance = (power(k + 1) - 2 * power(k) + power(k - 1)) / 2
    eigenvalues = np.fft.fft(np.r_[covariance, covariance[-2:0:-1]]).real.clip(0)
    z = rng.standard_normal(2 * n) + 1j * rng.standard_normal(2 * n)
    return np.fft.fft(np.sqrt(eigenvalues / (2 * n)) * z)[:n].real


def interior_details(samples, vanishing):
    """Per octave of the coefficients whose filter lies inside the data.

    Mode "zero" gives coefficient k the window of samples 2k+2-L .. 2k+1 of the padded series, so the first
    L/2 - 1 coefficients touch the border and the next (n - L)//2 + 1 do not. Approximations are cut the
    same way before the next octave.
    """
    wavelet = pywt.Wavelet(f"db{vanishing}")
    taps = wavelet.dec_len
    octaves = []
    while len(samples) >= taps:
        approximation, detail = pywt.dwt(samples, wavelet, mode="zero")
        start, count = taps // 2 - 1, (len(samples) - taps) // 2 + 1
        octaves.append(detail[start : start + count])
        samples = approximation[start : start + count]
    return octaves


def interior_energies(samples, vanishing):
    """(count, mean square) per octave."""
    return [(len(d), np.mean(d**2)) for d in interior_details(samples, vanishing)]


SERIES = {
    "poisson counts": lambda rng: rng.poisson(5.0, 10_000).astype(float),
    "bytes per bin": lambda rng: rng.poisson(40.0, 4097) * 1500.0,
    "fgn, H 0.8": lambda rng: fractional_noise(0.8, 16_384, rng),
    "a handful": lambda rng: rng.standard_normal(23),
}


@pytest.mark.parametrize("vanishing", range(1, 11))
@pytest.mark.parametrize("series", SERIES)
def test_energies(program, series, vanishing):
    samples = SERIES[series](np.random.default_rng(1))
    ours = program(vanishing, samples=samples)
    theirs = interior_energies(samples, vanishing)
    assert [o["j"] for o in ours] == list(range(1, len(theirs) + 1))
    assert [o["n"] for o in ours] == [count for count, _ in theirs]
    np.testing.assert_allclose([o["energy"] for o in ours], [e for _, e in theirs], rtol=1e-9)


@pytest.mark.parametrize("vanishing", [1, 3, 10])
def test_coherence(program, vanishing):
    rng = np.random.default_rng(2)
    common = rng.pareto(1.5, 3001)
    x, y = common + rng.standard_normal(3001), 1500 * (common + rng.pareto(1.5, 3001))
    ours = program("coherence", vanishing, samples=np.r_[x, y])
    details = [interior_details(series, vanishing) for series in (x, y)]
    theirs = [a @ b / np.sqrt((a @ a) * (b @ b)) for a, b in zip(*details)]
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 9, 1000])
def test_quantiles_and_moments(program, n):
    samples = np.random.default_rng(n).pareto(1.2, n)
    ps = [0.0, 0.05, 0.25, 0.5, 0.9, 0.95, 0.999, 1.0]
    ours = program("quantiles", ",".join(map(str, ps)), samples=samples)
    theirs = np.quantile(samples, ps, method="linear")
    np.testing.assert_allclose(ours["quantiles"], theirs, rtol=1e-13)
    np.testing.assert_allclose(ours["mean"], samples.mean(), rtol=1e-13)
    if n > 1:
        np.testing.assert_allclose(ours["sd"], samples.std(ddof=1), rtol=1e-12)
        np.testing.assert_allclose(ours["cov"], scipy.stats.variation(samples, ddof=1), rtol=1e-12)


@pytest.mark.parametrize("rounded", [False, True], ids=["continuous", "with ties"])
def test_distances(program, rounded):
    rng = np.random.default_rng(7)
    a, b = rng.lognormal(1.0, 1.0, 700), rng.lognormal(1.3, 0.8, 431)
    if rounded:
        a, b = np.ceil(a), np.ceil(b)
    ours = program("distance", len(a), samples=np.r_[a, b])
    assert ours["ks"] == pytest.approx(scipy.stats.ks_2samp(a, b).statistic, rel=1e-12)
    octaves = scipy.stats.wasserstein_distance(np.log2(a), np.log2(b))
    assert ours["wasserstein_log2"] == pytest.approx(octaves, rel=1e-11)


def test_special_functions(program):
    a = np.r_[0.5, 1.0, np.geomspace(0.3, 1e6, 60)]
    zeta = program("special", samples=a)
    np.testing.assert_allclose(zeta, scipy.special.zeta(2.0, a), rtol=1e-13)
