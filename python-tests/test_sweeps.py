"""Sweeps of the package `groundswell`: their numbers, executors, stopping, and what they refuse."""
import concurrent.futures
import math
import os
import pathlib
import signal
import threading

import pytest

import groundswell
from groundswell import _experiment
from small import TEXT

GRID = {"background.poisson.rate": ["2Mbit", "8Mbit"], "network.delay": ["2ms", "20ms"]}


def test_a_sweep_over_processes_has_the_numbers_of_single_runs(here):
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        seen = []
        sweep = groundswell.sweep(TEXT, GRID, pool, output="sweep", on_result=seen.append)
    assert len(sweep) == 4 and all(c.done for c in sweep) and len(seen) == 4
    cell = sweep[3]
    assert cell.settings == {"background.poisson.rate": "8Mbit", "network.delay": "20ms"}
    alone = groundswell.run(TEXT, set=dict(cell.settings), output="alone")
    assert cell.verdict.raw["foregrounds"][0]["backgrounds"] == alone.verdict.raw["foregrounds"][0]["backgrounds"]
    results = sweep.results
    assert results.height == 4 * 8 and set(GRID) <= set(results.columns)
    assert sweep.chart("network.delay", "background.poisson.rate").to_dict()["data"]
    # Existing results are not repeated.
    stamps = {p: p.stat().st_mtime_ns for p in pathlib.Path("sweep").glob("cell-*/*/manifest.json")}
    again = groundswell.sweep(TEXT, GRID, 1, output="sweep")
    assert again.results.equals(results)
    assert stamps == {p: p.stat().st_mtime_ns for p in pathlib.Path("sweep").glob("cell-*/*/manifest.json")}
    with pytest.raises(groundswell.UsageError, match="another sweep"):
        groundswell.sweep(TEXT, {"network.delay": ["9ms"]}, output="sweep")


def test_underscores_in_a_grid_are_dots(here):
    from groundswell._sweep import _drive, _Job, _Plan, _points
    from groundswell._sweep import Cell as SweepCell

    assert _points({"run__seed": [5], "network.rate": ["1Mbit"]}) == [{"run.seed": 5, "network.rate": "1Mbit"}]
    with pytest.raises(groundswell.UsageError, match="run.seed twice"):
        _points([{"run__seed": 5, "run.seed": 6}])

    class Records(concurrent.futures.Executor):
        def __init__(self):
            self.changes = []

        def submit(self, fn, /, text, path, cwd, changes, place):
            self.changes.append((sorted(c for c in changes if c.startswith("run.")), pathlib.Path(place).name))
            raise concurrent.futures.BrokenExecutor

    source, pool = _experiment.Source.of(TEXT), Records()
    cells = [SweepCell(i, settings) for i, settings in enumerate(_points({"run__seed": [5, 77]}))]
    _drive(pool, _Job(TEXT, None, "."), _Plan(source, None, 3, 100), here, cells, 0, None)
    seeds = {next(c for c in changes if c.startswith("run.seed")) for changes, _ in pool.changes}
    assert seeds == {"run.seed=5", "run.seed=77"}
    assert {name for _, name in pool.changes} == {"seeds-5-7", "seeds-77-79"}
    for arguments in ({"replications": 3}, {"until": "±10 %"}):
        with pytest.raises(groundswell.UsageError, match="run.replications of the grid"):
            groundswell.sweep(TEXT, {"run__replications": [5]}, output="both", **arguments)


def test_sequential_stopping_ends_where_intervals_are_narrow(here):
    until = 0.2
    sweep = groundswell.sweep(TEXT, GRID, output="sweep", until=f"±{until * 100:g} %", most=12)
    for cell in sweep:
        assert cell.verdict.widest <= until or cell.replications == 12
        assert cell.replications == cell.run.requests.select("replication").unique().collect().height
        assert cell.replications >= 5
    # Only the width decides: some cells are narrow enough after five replications.
    assert sweep.replications < 4 * 12


def test_sequential_stopping_takes_a_third_of_the_runs_of_a_fixed_number(here):
    # Only one load comes close to the capacity, so one cell varies much more than the others.
    grid = {"background.poisson.rate": ["1Mbit", "2Mbit", "3Mbit", "4Mbit", "9.5Mbit"], "network.delay": ["20ms", "40ms"]}
    until = 0.1
    sweep = groundswell.sweep(TEXT, grid, output="sweep", until=until)
    assert all(cell.verdict.widest <= until for cell in sweep)
    worst = max(sweep, key=lambda cell: cell.replications)
    # A smaller fixed number does not suffice: without its last batch the worst cell is wider.
    assert groundswell.Run(*worst.directories[:-1]).verdict.widest > until
    assert len(sweep) * worst.replications >= 3 * sweep.replications


def test_widths_are_read_and_others_refused():
    from groundswell._sweep import _narrow

    assert _narrow("±10 %") == _narrow("10%") == _narrow(0.1) == 0.1
    for wrong in ("ten", "±0 %", -1.0):
        with pytest.raises(groundswell.UsageError):
            _narrow(wrong)


@pytest.mark.parametrize("most", [*range(1, 15), 100])
def test_a_cell_never_has_more_replications_than_asked_for(most):
    from types import SimpleNamespace

    from groundswell._sweep import _Plan

    plan = _Plan(_experiment.Source.of(TEXT), 0.1, None, most)
    for widest in (0.11, 0.3, math.inf):
        _, n = plan.first({})
        while more := plan.next(SimpleNamespace(replications=n, widest=widest), n):
            # A batch has at least two replications unless only one is left.
            assert more >= 2 or n + more == most
            n += more
        assert n == most
    assert plan.next(SimpleNamespace(replications=1, widest=0.1), 1) == 0


@pytest.mark.parametrize("counted", [0, 1, 5])
def test_a_cell_ends_even_if_the_verdict_leaves_out_runs(counted):
    from types import SimpleNamespace

    from groundswell._sweep import _Plan

    plan, ran = _Plan(_experiment.Source.of(TEXT), 0.1, None, 100), 5
    while more := plan.next(SimpleNamespace(replications=counted, widest=math.inf), ran):
        ran += more
    assert ran == (100 if counted else 5)


def test_long_cells_are_first():
    source = _experiment.Source.of(TEXT)
    from groundswell._sweep import cost

    slow = cost(source, {"network.rate": "1Gbit", "run.duration": "5min"})
    assert slow > cost(source, {"network.rate": "1Gbit"}) > cost(source, {}) > cost(source, {"network.rate": "64kbit"})


class Flaky(concurrent.futures.ThreadPoolExecutor):
    """An executor whose first workers die."""

    def __init__(self, failures):
        super().__init__(2)
        self.left, self.lock = failures, threading.Lock()

    def submit(self, fn, /, *args, **kwargs):
        with self.lock:
            if self.left > 0:
                self.left -= 1
                fn = self.dies
        return super().submit(fn, *args, **kwargs)

    @staticmethod
    def dies(*_):
        raise OSError("the worker is gone")


def test_a_batch_that_fails_is_tried_again_and_one_that_cannot_work_is_not(here):
    with Flaky(3) as pool:
        sweep = groundswell.sweep(TEXT, GRID, pool, output="flaky", retries=3)
    assert all(c.done for c in sweep) and sum(c.attempts for c in sweep) == 4 + 3
    with Flaky(2) as pool, pytest.raises(groundswell.SweepError) as failed:
        groundswell.sweep(TEXT, GRID, pool, output="failed", retries=0)
    assert len(failed.value.errors) == 2
    with pytest.raises(groundswell.SweepError) as wrong:
        groundswell.sweep(TEXT, {"network.dealy": ["1ms"]}, output="wrong", retries=5)
    assert isinstance(wrong.value.errors[0], groundswell.ExperimentError)


def test_a_dask_cluster_of_four_processes_survives_that_one_is_killed(here):
    distributed = pytest.importorskip("distributed")
    slower = TEXT.replace('duration = "5s"', 'duration = "60s"')
    grid = {"network.delay": [f"{d}ms" for d in range(1, 9)]}
    with (
        distributed.LocalCluster(n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = client.run(os.getpid)
        assert len(set(pids.values())) == 4
        killed = []

        def kill_one(_cell):
            if not killed:
                busy = [w for w, tasks in client.processing().items() if tasks]
                killed.append(pids[busy[0]] if busy else next(iter(pids.values())))
                os.kill(killed[0], signal.SIGKILL)

        sweep = groundswell.sweep(slower, grid, client.get_executor(), output="dask", on_result=kill_one)
        assert killed and killed[0] not in client.run(os.getpid).values()
    assert all(c.done for c in sweep)
    # The numbers equal those without a cluster bit for bit, and no incomplete files are left.
    plain = groundswell.sweep(slower, grid, output="plain")
    assert sweep.results.equals(plain.results)
    assert math.isfinite(sweep.results["seconds"].min())
    assert not list(pathlib.Path("dask").glob("cell-*/.seeds-*"))


def test_jobs_of_submitit_have_the_numbers_of_this_machine(here):
    submitit = pytest.importorskip("submitit")
    # Its local executor starts each job as SLURM does: a separate process that reads and writes files.
    executor = submitit.AutoExecutor("log", cluster="local")
    executor.update_parameters(timeout_min=5)
    sweep = groundswell.sweep(TEXT, GRID, executor, output="submitit")
    assert all(c.done for c in sweep)
    assert sweep.results.equals(groundswell.sweep(TEXT, GRID, output="plain").results)
    with pytest.raises(groundswell.SweepError) as wrong:
        groundswell.sweep(TEXT, {"network.dealy": ["1ms"]}, executor, output="wrong", retries=0)
    assert "dealy" in str(wrong.value)


def test_tasks_of_ray_have_the_numbers_of_this_machine(here, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1", object_store_memory=80_000_000)
    try:
        sweep = groundswell.sweep(TEXT, GRID, ray, output="ray")
    finally:
        ray.shutdown()
    assert all(c.done for c in sweep)
    assert sweep.results.equals(groundswell.sweep(TEXT, GRID, output="plain").results)


def test_what_is_no_executor_is_refused(here):
    with pytest.raises(groundswell.UsageError, match="no executor"):
        groundswell.sweep(TEXT, GRID, "four", output="none")


# Mistakes.


def test_results_of_cells_with_different_keys_have_nulls(here):
    sweep = groundswell.sweep(TEXT, [{"network.rate": "9Mbit"}, {"network.delay": "2ms"}], output="sweep")
    settings = sweep.results.select("cell", "network.rate", "network.delay").unique(maintain_order=True)
    assert settings.rows() == [(0, "9Mbit", None), (1, None, "2ms")]


def test_what_a_sweep_cannot_do_is_refused_before_it_runs(here):
    for arguments, message in (
        ({"until": 10}, "1000 %"),
        ({"until": 5.0}, "500 %"),
        ({"replications": 0}, "less than 1"),
        ({"until": 0.1, "most": 0}, "less than 1"),
        ({"until": 0.1, "replications": 5}, "both say how many"),
    ):
        with pytest.raises(groundswell.UsageError, match=message):
            groundswell.sweep(TEXT, GRID, output="sweep", **arguments)
    assert not (here / "sweep").exists()
