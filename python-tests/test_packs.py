"""Long sweeps of the package `groundswell`: finished batches are packed, and everything in them opens."""
import json
import os

import pytest

import groundswell

TINY = """
name = "tiny"
network = { rate = "10Mbit", delay = "1ms", rtt = "4ms" }
foreground = [{ name = "page", kind = "web", object = "5kB", think = "10ms" }]
background = [{ name = "none", kind = "none" }, { name = "cbr", kind = "cbr", rate = "5Mbit" }]
run = { replications = 2, warmup = "100ms", duration = "300ms", keep = { flows = false } }
"""


def files(directory):
    return sum(len(names) for _, _, names in os.walk(directory))


def test_a_long_sweep_has_few_files_and_every_run_of_it_opens(here, monkeypatch):
    from groundswell import _sweep

    monkeypatch.setattr(_sweep, "PACK", 10)
    grid = {"run.seed": list(range(1, 101))}
    most = 0

    def counts(cell):
        nonlocal most
        most = max(most, files("sweep"))
        # A run may be asked for at any time.
        assert cell.index % 25 or cell.run.requests.collect().height

    sweep = groundswell.sweep(TINY, grid, 2, output="sweep", on_result=counts)
    runs = sum(len(cell.run.manifest["cells"]) for cell in sweep[:2]) // 2 * len(sweep)
    assert runs == 400 and len(list(here.glob("sweep/pack-*.zip"))) >= 8
    # 1000 without packs: nine for each cell.
    assert most < 300 and len(list(here.glob("sweep/cell-*"))) <= 22
    packed = next(cell for cell in reversed(sweep) if not cell.batches[0].exists())
    alone = groundswell.run(TINY, set=dict(packed.settings), output="alone")
    assert packed.run.requests.collect().equals(alone.requests.collect())
    assert packed.directories[0].exists() and not (packed.directories[0] / "report.html").exists()
    assert "<svg" in packed.run.report().html
    # The results are opened at once, and a pack is as good as the directories that it holds.
    import polars as pl

    assert pl.read_parquet("sweep/results.parquet").equals(sweep.results)
    manifest = packed.run.manifest
    again = groundswell.sweep(TINY, grid, 2, output="sweep")
    assert again.results.equals(sweep.results) and again[packed.index].run.manifest == manifest
    assert files("sweep") < 300
    assert not [p for p in here.glob("sweep/**/.*") if p.name != ".lock"]


def test_a_batch_that_grows_from_a_pack_and_one_that_is_old(here, monkeypatch):
    from groundswell import _packs, _sweep

    monkeypatch.setattr(_sweep, "PACK", 2)
    grid = {"background.cbr.rate": ["1Mbit", "2Mbit", "3Mbit", "4Mbit", "5Mbit", "6Mbit"]}
    sweep = groundswell.sweep(TINY, grid, 2, output="sweep", until=1e-9, most=8)
    assert all(cell.replications == 8 and len(cell.batches) == 2 for cell in sweep)
    assert all(cell.run.requests.collect()["replication"].n_unique() == 8 for cell in sweep)
    # A pack of another version is refused, and the hint says what to delete.
    place = next(p for cell in sweep for p in cell.batches if _packs.find(p))
    manifest = place / "manifest.json"
    old = json.loads(manifest.read_text()) | {"hash": "0" * 16, "version": "0.0.1"}
    manifest.write_text(json.dumps(old))
    _packs.pack([place], "test")
    assert not place.exists() and len([p for p in here.glob("sweep/pack-*.zip") if place.name in str(_packs._contents(p))]) >= 2
    with pytest.raises(groundswell.SweepError) as failed:
        groundswell.sweep(TINY, grid, 2, output="sweep", until=1e-9, most=8)
    (error,) = failed.value.errors.values()
    assert "pack-test" in error.hint and str(place) in error.hint
