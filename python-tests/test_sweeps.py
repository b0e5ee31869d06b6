"""Sweeps of the package `groundswell`: their numbers, executors, stopping, and what they refuse."""
import concurrent.futures
import contextlib
import json
import math
import multiprocessing
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

import groundswell
from conftest import package
from groundswell import _experiment
from small import LEARNT, TEXT

ROOT = pathlib.Path(__file__).resolve().parent.parent
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
        groundswell.sweep(TEXT.replace("20kB", "30kB"), GRID, output="sweep")


def test_equal_points_are_one_cell(here):
    rows = groundswell.sweep(TEXT, {"network.rate": ["10Mbit", "20Mbit", "10Mbit"]}, 2, output="sweep")
    assert [cell.settings for cell in rows] == [{"network.rate": "10Mbit"}, {"network.rate": "20Mbit"}]
    assert [cell.index for cell in rows] == [0, 1] and rows.results["cell"].unique().to_list() == [0, 1]


def test_underscores_in_a_grid_are_dots(here):
    from groundswell._grid import points
    from groundswell._sweep import Cell as SweepCell
    from groundswell._sweep import _drive, _Job, _Plan

    assert points({"run__seed": [5], "network.rate": ["1Mbit"]}) == [{"run.seed": 5, "network.rate": "1Mbit"}]
    with pytest.raises(groundswell.UsageError, match="run.seed twice"):
        points([{"run__seed": 5, "run.seed": 6}])

    class Records(concurrent.futures.Executor):
        def __init__(self):
            self.changes = []

        def submit(self, fn, /, text, path, cwd, changes, place, token, later):
            assert not later
            self.changes.append((sorted(c for c in changes if c.startswith("run.")), pathlib.Path(place).name))
            raise concurrent.futures.BrokenExecutor

    source, pool = _experiment.Source.of(TEXT), Records()
    cells = [SweepCell(i, settings) for i, settings in enumerate(points({"run__seed": [5, 77]}))]
    _drive(pool, _Job(TEXT, None, ".", "token"), _Plan(source, None, 3, 100), here, cells, 0, None)
    seeds = {next(c for c in changes if c.startswith("run.seed")) for changes, _ in pool.changes}
    assert seeds == {"run.seed=5", "run.seed=77"}
    assert {name for _, name in pool.changes} == {"seeds-5-7", "seeds-77-79"}
    for arguments in ({"replications": 3}, {"until": "±10 %"}):
        with pytest.raises(groundswell.UsageError, match="run.replications of the grid"):
            groundswell.sweep(TEXT, {"run__replications": [5]}, output="both", **arguments)


def test_sequential_stopping_ends_where_intervals_arenarrow(here):
    until = 0.2
    sweep = groundswell.sweep(TEXT, GRID, output="sweep", until=f"±{until * 100:g} %", most=12)
    for cell in sweep:
        assert cell.verdict.widest <= until or cell.replications == 12
        assert cell.replications == cell.run.requests.select("replication").unique().collect().height
        assert cell.replications >= 5
    # Only the width decides: some cells are narrow enough after five replications.
    assert sweep.replications < 4 * 12


def test_the_energy_of_backgrounds_is_looked_at_once(here):
    # A rate that often exceeds the link's: TCP waits, and does not have the energy.
    text = """
name = "full"
network = { rate = "10Mbit", rtt = "40ms" }
foreground = [{ name = "web", kind = "web", object = "100kB", think = "200ms" }]
background = [
    { name = "none", kind = "none" },
    { name = "full", kind = "poisson", rate = "9800kbit", transport = "tcp", energy = { at = "1024ms", db = 20 } },
]
run = { replications = 1, warmup = "1s", duration = "21s" }
"""
    sweep = groundswell.sweep(text, {"network.delay": ["20ms"]}, output="sweep", until=0.001, most=6)
    batches = sweep[0].directories
    assert len(batches) == 2
    codes = [[w["code"] for w in groundswell.Run(batch).manifest["warnings"]] for batch in batches]
    assert ["energy-missed" in found for found in codes] == [True, False]
    assert "energy-missed" in [doubt["code"] for doubt in sweep[0].verdict.raw["doubts"]]


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
    from groundswell._grid import narrow

    assert narrow("±10 %") == narrow("10%") == narrow(0.1) == 0.1
    for wrong in ("ten", "±0 %", -1.0):
        with pytest.raises(groundswell.UsageError):
            narrow(wrong)


@pytest.mark.parametrize("most", [*range(1, 15), 100])
def test_a_cell_never_has_more_replications_than_asked_for(most):
    from types import SimpleNamespace

    from groundswell._sweep import _Plan

    plan = _Plan(_experiment.Source.of(TEXT), 0.1, None, most)
    for widest in (0.11, 0.3, math.inf):
        _, n = plan.first({})
        while more := plan.next(SimpleNamespace(replications=n, widest=widest, compared=True), n):
            # A batch has at least two replications unless only one is left.
            assert more >= 2 or n + more == most
            n += more
        assert n == most
    assert plan.next(SimpleNamespace(replications=1, widest=0.1, compared=True), 1) == 0
    # Nothing is compared, so no interval becomes narrower.
    assert plan.next(SimpleNamespace(replications=5, widest=math.inf, compared=False), 5) == 0


@pytest.mark.parametrize("counted", [0, 1, 5])
def test_a_cell_ends_even_if_the_verdict_leaves_out_runs(counted):
    from types import SimpleNamespace

    from groundswell._sweep import _Plan

    plan, ran = _Plan(_experiment.Source.of(TEXT), 0.1, None, 100), 5
    while more := plan.next(SimpleNamespace(replications=counted, widest=math.inf, compared=True), ran):
        ran += more
    assert ran == (100 if counted else 5)


def test_long_cells_are_first():
    source = _experiment.Source.of(TEXT)
    from groundswell._grid import cost

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
        groundswell.sweep(TEXT, {"network.delay": ["1x", "1ms"]}, output="wrong", retries=5)
    assert isinstance(wrong.value.errors[0], groundswell.ExperimentError)
    assert [cell.attempts for cell in wrong.value.sweep] == [1, 1]


def test_a_dask_cluster_of_four_processes_survives_that_one_is_killed(here):
    distributed = package("distributed")
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
    submitit = package("submitit")
    # Its local executor starts each job as SLURM does: a separate process that reads and writes files.
    executor = submitit.AutoExecutor("log", cluster="local")
    executor.update_parameters(timeout_min=5)
    sweep = groundswell.sweep(TEXT, GRID, executor, output="submitit")
    assert all(c.done for c in sweep)
    assert sweep.results.equals(groundswell.sweep(TEXT, GRID, output="plain").results)
    with pytest.raises(groundswell.SweepError) as wrong:
        groundswell.sweep(TEXT, {"network.delay": ["1x", "1ms"]}, executor, output="wrong", retries=0)
    assert "1x" in str(wrong.value)


def test_tasks_of_ray_have_the_numbers_of_this_machine(here, monkeypatch):
    ray = package("ray")
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


# Inputs that change, and interruptions.



def use(model):
    shutil.copy(ROOT / "models" / f"{model}.json.zst", "mine.json.zst")


def test_batches_of_another_model_are_refused(here):
    (here / "mine.toml").write_text(LEARNT)
    use("calls")
    first = groundswell.sweep("mine.toml", {"network.delay": ["5ms"]}, output="sweep")
    assert groundswell.sweep("mine.toml", {"network.delay": ["5ms"]}, output="sweep").results.equals(first.results)
    use("streaming")
    with pytest.raises(groundswell.SweepError, match="model of poisson: there") as stale:
        groundswell.sweep("mine.toml", {"network.delay": ["5ms"]}, output="sweep")
    [error] = stale.value.errors.values()
    assert "or delete" in error.hint and "fresh" not in error.hint
    shutil.rmtree(first[0].directories[0])
    fresh = groundswell.sweep("mine.toml", {"network.delay": ["5ms"]}, output="sweep")
    assert not fresh.results.equals(first.results)


def test_batches_of_a_cell_have_the_same_model(here):
    (here / "mine.toml").write_text(LEARNT)
    use("calls")
    with pytest.raises(groundswell.SweepError, match="its model differs"):
        groundswell.sweep(
            "mine.toml", {"network.delay": ["5ms"]}, output="sweep", until=0.001, most=10, on_result=lambda _: use("streaming")
        )


def test_cells_of_a_sweep_have_the_same_model(here):
    class Now(concurrent.futures.Executor):
        models = iter(["calls", "streaming"])

        def submit(self, fn, /, *args):
            use(next(self.models))
            future = concurrent.futures.Future()
            future.set_result(fn(*args))
            return future

    (here / "mine.toml").write_text(LEARNT)
    with pytest.raises(groundswell.SweepError, match="mine.json.zst has changed") as failed:
        groundswell.sweep("mine.toml", {"network.delay": ["5ms", "6ms"]}, Now(), output="sweep")
    assert len(failed.value.errors) == 1
    with pytest.raises(groundswell.SweepError, match="model of poisson: there"):
        groundswell.sweep("mine.toml", {"network.delay": ["5ms", "6ms"]}, output="sweep")


LONG = TEXT.replace('duration = "5s"', 'duration = "20000s"').replace('"poisson"\nrate', '"poisson"\npacket = "100B"\nrate')

SWEEP = """
import concurrent.futures, sys, groundswell
if __name__ == "__main__":
    pool = concurrent.futures.ProcessPoolExecutor(2) if sys.argv[1] == "processes" else 2
    groundswell.sweep({text!r}, {{"network.delay": ["1ms", "2ms", "3ms", "4ms"]}}, pool, output="long")
"""


def programs(place):
    lines = subprocess.run(["ps", "-ww", "-eo", "stat=,args="], capture_output=True, text=True).stdout.splitlines()
    return [line for line in lines if str(place) in line and "--events" in line and not line.startswith("Z")]


@pytest.mark.parametrize(("kind", "who"), [("threads", os.kill), ("processes", os.kill), ("processes", os.killpg)])
def test_ctrl_c_stops_a_sweep_and_its_workers(here, kind, who):
    # A terminal sends the signal to all processes of the group.
    (here / "script.py").write_text(SWEEP.format(text=LONG))
    command = [sys.executable, "script.py", kind]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as child:
        try:
            # Both workers are at work: one that waits for its first task is the pool's to end.
            until = time.monotonic() + 60
            while len(programs(here / "long")) < 2 and time.monotonic() < until:
                time.sleep(0.1)
            assert len(programs(here / "long")) == 2
            who(child.pid, signal.SIGINT)
            _, said = child.communicate(timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    assert "KeyboardInterrupt" in said and child.returncode != 0
    assert not programs(here / "long") and not list(here.glob("long/cell-*/.seeds-*"))


def test_a_worker_that_its_pool_terminates_leaves_nothing_behind(here):
    # A new process, without the handlers of this one.
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        number = pool.submit(os.getpid).result()
        batch = pool.submit(groundswell._worker.work, LONG, None, str(here), [], str(here / "long/cell-a/seeds-1-2"), "token")
        until = time.monotonic() + 60
        while not list(here.glob("long/cell-a/.seeds-*")) and time.monotonic() < until:
            time.sleep(0.02)
        os.kill(number, signal.SIGTERM)
        with pytest.raises(concurrent.futures.process.BrokenProcessPool):
            batch.result(60)
    assert not programs(here / "long") and not list(here.glob("long/cell-a/.seeds-*"))


def test_an_exception_of_on_result_stops_the_sweep(here):
    class Wrong(Exception):
        pass

    def wrong(_cell):
        raise Wrong

    # The second cell would take very long.
    with pytest.raises(Wrong):
        groundswell.sweep(LONG, {"run.duration": ["2s", "20000s"]}, 2, output="sweep", on_result=wrong)
    assert not programs(here / "sweep") and not list(here.glob("sweep/.stop-*"))


def test_only_what_is_surely_left_behind_is_removed(here):
    from groundswell._worker import DAY, sweep_up

    own, other, old = (here / "cell-1" / f".seeds-1-5.{name}" for name in ("own.1", "other.2", "other.3"))
    for path in (own, other, old):
        (path / "cells").mkdir(parents=True)
    before = time.time() - 2 * DAY
    for path in (old, old / "cells", other):
        os.utime(path, (before, before))
    sweep_up(here, "own")
    # Another sweep is at work in `other`: it finished a run a moment ago.
    assert not own.exists() and other.exists() and not old.exists()


def test_an_application_of_which_nothing_is_compared_widens_nothing():
    from groundswell._results import Verdict

    def foreground(judged, widest):
        of = {"backgrounds": [{"judged": judged}], "comparisons": []}
        return of | {"sureness": {"widest": widest, "replications": 5}}

    known, endless, nothing = foreground([{}], 0.1), foreground([{}], None), foreground([], None)
    for foregrounds, widest, compared in (
        ([known, nothing], 0.1, True),
        ([known, endless], math.inf, True),
        ([nothing], math.inf, False),
    ):
        verdict = Verdict({"foregrounds": foregrounds})
        assert (verdict.widest, verdict.compared) == (widest, compared)


def test_what_another_process_removes_meanwhile_is_passed_over(here):
    from groundswell._worker import sweep_up

    # A link to what is gone is listed, and does not exist.
    (here / ".stop-x").symlink_to("gone")
    sweep_up(here, "own")


def test_a_cell_of_which_no_run_counts_has_an_error(here, monkeypatch):
    from groundswell import _results

    call = _results.call

    def without(arguments, **given):
        ended = call(arguments, **given)
        raw = ended.json()
        for foreground in raw.get("verdict", {}).get("foregrounds", []):
            foreground["sureness"]["replications"] = 0
        ended.output = json.dumps(raw)
        return ended

    monkeypatch.setattr(_results, "call", without)
    with pytest.raises(groundswell.SweepError, match="no replication counts") as wrong:
        groundswell.sweep(TEXT, {"network.rate": ["10Mbit"]}, 1, output="sweep", replications=1)
    [cell] = wrong.value.sweep
    assert not cell.done and cell.attempts == 1 and cell.run.directory.is_dir()


def test_a_cell_that_matches_mean_rates_is_one_run(here):
    text = TEXT.replace('kind = "poisson"\nrate = "6Mbit"', 'kind = "learnt"\nmodel = "access-link"').replace("5s", "3s")
    text = text.replace("[run]", '[[background]]\nname = "cbr"\nkind = "cbr"\nrate = "match:poisson"\n[run]')
    grid = {"background.cbr.match": ["mean", "per-seed"]}
    mean, each = groundswell.sweep(text, grid, output="sweep", until=0.001, most=7)
    alone = groundswell.run(text, output="alone", run__replications=7)
    assert mean.replications == each.replications == 7
    measured = mean.run.manifest["measured"]
    assert measured == alone.manifest["measured"] and len(measured["poisson"]["down_bps_each"]) == 7
    assert mean.verdict.raw["foregrounds"][0]["backgrounds"] == alone.verdict.raw["foregrounds"][0]["backgrounds"]
    # Rates of the same seed do not depend on the batch.
    assert len(mean.directories) == 1 and len(each.directories) == 2


def test_emulated_runs_do_not_disturb_each_other(here, monkeypatch):
    workers = []

    class Records(concurrent.futures.Executor):
        def __init__(self, count):
            workers.append(count)

        def submit(self, *_):
            raise concurrent.futures.BrokenExecutor

    monkeypatch.setattr(concurrent.futures, "ThreadPoolExecutor", Records)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    for text, grid, executor in (
        (TEXT, GRID, None),
        ('backend = "emulated"' + TEXT, GRID, None),
        (TEXT, {"backend": ["simulated", "emulated"]}, None),
        ('backend = "emulated"' + TEXT, GRID, 2),
    ):
        with pytest.raises(groundswell.SweepError):
            groundswell.sweep(text, grid, executor, output=f"sweep-{len(workers)}")
    assert workers == [8, 1, 1, 2]


# Charts.


def test_a_chart_has_a_panel_for_each_value_of_other_settings_and_each_application(here):
    text = TEXT.replace("[[background]]", '[[foreground]]\nname = "bulk"\nkind = "web"\nobject = "200kB"\n[[background]]', 1)
    grid = {"network.delay": ["2ms", "20ms"], "background.poisson.rate": ["2Mbit", "8Mbit"], "network.rate": ["10Mbit", "20Mbit"]}
    sweep = groundswell.sweep(text, grid, output="sweep")

    def rows(**options):
        return sweep.chart("network.delay", "background__poisson__rate", percentile=0.5, **options).to_dict()

    def values(chart):
        [data] = chart["datasets"].values()
        return data

    every = rows()
    places = {(r["network.delay"], r["background.poisson.rate"], r["background"], r["panel"]) for r in values(every)}
    assert len(places) == len(values(every)) == 8 * 2
    assert every["facet"]["row"]["field"] == "panel"
    assert {r["panel"] for r in values(rows(foreground="bulk"))} == {"network.rate = 10Mbit", "network.rate = 20Mbit"}
    for wrong, name in (
        ({"percentile": 0.51}, "there are: .*0.5, "),
        ({"background": "nobody"}, "there are: none, poisson"),
        ({"foreground": "nobody"}, "there are: page, bulk"),
        ({"background": "none"}, "no slowdown"),
    ):
        with pytest.raises(groundswell.UsageError, match=name):
            sweep.chart("network.delay", "network.rate", **{"percentile": 0.5, **wrong})
    with pytest.raises(groundswell.UsageError, match="there are: network.delay, background.poisson.rate, network.rate"):
        sweep.chart("network.delay", "network.dealy")
    twice = groundswell.sweep(TEXT, [{"network.delay": "2ms"}] * 2, output="twice")
    assert len(twice) == 1


# Mistakes.


def test_cells_that_fail_do_not_hide_the_others(here):
    with pytest.raises(groundswell.SweepError) as failed:
        groundswell.sweep(TEXT, {"network.delay": ["5ms", "5x", "6ms"]}, output="sweep")
    there = failed.value.sweep
    assert [cell.done for cell in there] == [True, False, True] and list(failed.value.errors) == [1]
    with pytest.raises(groundswell.UsageError, match="cell 1 has no runs"):
        there[1].run
    assert there.results["network.delay"].unique(maintain_order=True).to_list() == ["5ms", "6ms"]
    assert pickle.loads(pickle.dumps(failed.value)).sweep.results.equals(there.results)
    # Without that cell, and with others, the same directory goes on.
    stamps = {p: p.stat().st_mtime_ns for p in here.glob("sweep/cell-*/*/manifest.json")}
    more = groundswell.sweep(TEXT, {"network.delay": ["7ms", "5ms", "6ms"]}, output="sweep")
    assert len(stamps) == 2 and all(cell.done for cell in more)
    after = {p: p.stat().st_mtime_ns for p in here.glob("sweep/cell-*/*/manifest.json")}
    assert len(after) == 3 and stamps.items() <= after.items()


def test_settings_called_as_results_and_of_several_kinds_have_columns(here):
    lists = [
        [{"name": "none", "kind": "none"}, {"name": "p", "kind": "poisson", "rate": rate}] for rate in ("3Mbit", "6Mbit")
    ]
    sweep = groundswell.sweep(TEXT, {"background": lists}, output="lists")
    assert set(sweep.results["background"]) == {"none", "p"}
    assert '"3Mbit"' in sweep.results["settings.background"][0]
    assert sweep.chart("background", "background", percentile=0.5).to_dict()["datasets"]
    red = TEXT.replace("[[foreground]]", 'qdisc = {kind = "red"}\n[[foreground]]')
    mixed = groundswell.sweep(red, {"network.qdisc.weight": [0.002, "one-second"]}, output="mixed")
    assert mixed.results["network.qdisc.weight"].unique(maintain_order=True).to_list() == ["0.002", "one-second"]


def test_numbers_of_numpy_are_numbers(here):
    numpy = package("numpy")
    text = TEXT.replace("[[foreground]]", 'loss = {kind = "independent", p = 0.1}\n[[foreground]]')
    sweep = groundswell.sweep(text, {"network.loss.p": numpy.linspace(0.001, 0.01, 2), "run.seed": numpy.arange(1, 2)}, output="sweep")
    assert sweep.results["network.loss.p"].unique(maintain_order=True).to_list() == [0.001, 0.01]
    assert sweep[0].settings == {"network.loss.p": 0.001, "run.seed": 1}
    assert _experiment.value({"p": [numpy.float64(0.25), numpy.bool_(True)]}) == '{"p" = [0.25, true]}'



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
        ({"executor": 0}, "less than 1"),
        ({"grid": []}, "no cells"),
        ({"grid": {"network.delay": []}}, "no cells"),
        ({"grid": {"network.delay": [None]}}, "network.delay to None"),
        ({"grid": {"network.delay": 5}}, "no list of values"),
    ):
        with pytest.raises(groundswell.UsageError, match=message):
            groundswell.sweep(TEXT, output="sweep", **{"grid": GRID, **arguments})
    assert not (here / "sweep").exists()
    with pytest.raises(groundswell.UsageError, match="many.* is no whole number"):
        groundswell.sweep(TEXT, {"run.seed": ["many"]}, output="sweep")
    assert not (here / "sweep").exists()
    (here / "sweep").mkdir()
    (here / "file").write_text("")
    with pytest.raises(groundswell.UsageError, match="Not a directory|File exists"):
        groundswell.sweep(TEXT, GRID, output="file/sweep")
    for damaged in ("{", "[]", '{"cells": {}}'):
        (here / "sweep" / "sweep.json").write_text(damaged)
        with pytest.raises(groundswell.UsageError, match="sweep.json is damaged"):
            groundswell.sweep(TEXT, GRID, output="sweep")


def test_a_file_that_changes_during_a_sweep_is_refused(here):
    file = here / "mine.toml"
    file.write_text(TEXT)

    def edited(_):
        file.write_text(TEXT.replace("20kB", "21kB"))

    with pytest.raises(groundswell.SweepError, match="has changed since the sweep began") as failed:
        groundswell.sweep(file, GRID, 1, output="sweep", on_result=edited)
    # One more may have begun before.
    assert sum(cell.done for cell in failed.value.sweep) in (1, 2)


# Several hundred runs, each of a moment.
