"""Tests the package `groundswell` against the program: its numbers, its errors, Ctrl-C, its types."""
import concurrent.futures
import math
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time

import polars as pl
import pytest
import tomli

import groundswell
from groundswell import _experiment, _process
from groundswell import build as b

ROOT = pathlib.Path(__file__).resolve().parent.parent

TEXT = """
name = "small"
[network]
rate = "10Mbit"
delay = "5ms"
[[foreground]]
name = "page"
kind = "web"
object = "20kB"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "poisson"
kind = "poisson"
rate = "6Mbit"
[run]
replications = 2
warmup = "1s"
duration = "5s"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return groundswell.run(TEXT, output=tmp_path_factory.mktemp("runs") / "small")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_same_experiment_in_every_form_has_the_same_tables(run, here):
    builder = b.Experiment(
        name="small",
        network=b.Network(rate="10Mbit", delay="5ms"),
        foreground=[b.WebForeground(name="page", object="20kB")],
        background=[b.NoneBackground(name="none"), b.PoissonBackground(name="poisson", rate="6Mbit")],
        run=b.Run(replications=2, warmup="1s", duration="5s"),
    )
    path = here / "small.toml"
    path.write_text(TEXT)
    expected = (run.directory / "requests.parquet").read_bytes()
    for i, form in enumerate([builder, builder.to_dict(), path, str(path)]):
        other = groundswell.run(form, output=here / str(i))
        assert (other.directory / "requests.parquet").read_bytes() == expected, form


def test_slowdowns_are_the_numbers_of_the_report(run):
    frame = run.slowdown()
    assert frame.height == 2 * 4
    row = frame.row(by_predicate=(pl.col("background") == "poisson") & (pl.col("percentile") == 0.5), named=True)
    assert row["slowdown"] > 1.0 and row["slowdown_low"] <= row["slowdown"] <= row["slowdown_high"]
    # In the format of the page: two decimals and a multiplication sign.
    assert f"{row['slowdown']:.2f}×" in run.report().html
    none = frame.filter(background="none")
    assert none["slowdown"].null_count() == 4 and none["seconds"].null_count() == 0


def test_tables_are_lazy_and_pandas_can_have_them(run):
    for name in groundswell.TABLES:
        frame = run.table(name)
        assert isinstance(frame, pl.LazyFrame)
        described = run.columns(name)["name"].to_list()
        assert frame.collect_schema().names() == described
    assert run.requests.to_pandas().shape[0] == run.requests.collect().height > 0
    with pytest.raises(groundswell.UsageError, match="waits") as missing:
        run.waits
    assert "run.keep.waits" in missing.value.hint


def test_every_chart_is_one_of_altair_and_can_be_changed(run):
    for name in groundswell.CHARTS:
        try:
            chart = run.chart(name)
        except groundswell.UsageError as error:
            assert name in ("scales-up", "waterfall") and "nothing to show" in str(error)
            continue
        changed = chart.properties(title="mine").to_dict()
        assert changed["title"] == "mine"
        assert "vega-lite" in changed["$schema"]
    with pytest.raises(groundswell.UsageError, match="unknown picture"):
        run.chart("nothing")
    with pytest.raises(groundswell.UsageError, match="unknown foreground"):
        run.chart("cdf", foreground="pge")


def test_a_chart_draws_what_the_tables_have(run):
    import vl_convert

    chart = run.chart("cdf").to_dict()
    rows = [r for layer in chart["layer"] for r in layer["data"]["values"] if "y" in r]
    done = run.requests.filter(background="poisson", outcome="done").collect()
    times = (done["last_byte_s"] - done["start_s"]).to_list()
    drawn = [r["x"] for r in rows if r["series"] == "poisson"]
    # Requests that end before the warm-up are not drawn. Everything drawn was measured.
    assert drawn and all(min(abs(x - t) for t in times) < 1e-9 for x in drawn)
    assert vl_convert.vegalite_to_svg(chart).startswith("<svg")


def test_a_notebook_shows_the_report(run):
    shown = run._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "Completion time" in shown


def test_runs_with_other_seeds_are_taken_together(run, here):
    other = groundswell.run(TEXT, output=here / "other", run__seed=3, run__replications=3)
    both = groundswell.Run(run.directory, other.directory)
    whole = groundswell.run(TEXT, output=here / "whole", run__replications=5)
    assert both.verdict.raw == whole.verdict.raw
    assert both.verdict.replications == 5
    left = both.requests.collect().sort("background", "replication", "client", "index")
    right = whole.requests.collect().sort("background", "replication", "client", "index")
    assert left.equals(right)
    with pytest.raises(groundswell.UsageError, match="seed"):
        groundswell.Run(run.directory, whole.directory).verdict


def test_runs_are_compared_with_the_statistics_of_pairs(run, here):
    slow = groundswell.run(TEXT, output=here / "slow", network__rate="8Mbit")
    both = groundswell.compare(run, slow, by="network.rate")
    # Two replications cannot show equality.
    assert both.differs["slow"] in ("yes", "unclear")
    assert both.changes.rows() == [("slow", "network.rate", "10Mbit", "8Mbit")]
    # The ratio of the medians by hand: the geometric mean over pairs of runs.
    medians = []
    for replication in (0, 1):
        own = (
            r.requests.filter(pl.col("background") == "none", pl.col("replication") == replication)
            .select((pl.col("last_byte_s") - pl.col("start_s")).quantile(0.5, "lower"))
            .collect()
            .item()
            for r in (slow, run)
        )
        medians.append(next(own) / next(own))
    found = both.differences.filter(background="none", measure="time", percentile=0.5)
    assert found["ratio"].item() == pytest.approx(math.sqrt(math.prod(medians)), rel=0.02)
    assert found["ratio_low"].item() <= found["ratio"].item() <= found["ratio_high"].item()
    page = both.report(here / "compared.html").html
    assert "page beside poisson" in page and "10Mbit → 8Mbit" in page
    assert "<iframe" in both._repr_html_()
    with pytest.raises(groundswell.UsageError, match="differ in more than network.queue: network.rate"):
        groundswell.compare(run, slow, by="network.queue")


def test_an_experiment_that_is_wrong_says_where_and_what_to_write(here):
    with pytest.raises(groundswell.ExperimentError) as wrong:
        groundswell.run(TEXT.replace("delay =", "dealy ="))
    [problem] = wrong.value.problems
    assert (problem.line, problem.column, problem.key) == (5, 1, "network.dealy")
    assert "delay" in problem.hint and problem.source.startswith("dealy")
    assert wrong.value.code == 2 and wrong.value.file == "standard input"
    again = pickle.loads(pickle.dumps(wrong.value))
    assert again.problems == wrong.value.problems and str(again) == str(wrong.value)


def test_what_the_command_line_does_not_understand_is_an_exception(here):
    with pytest.raises(groundswell.UsageError, match="fail-if"):
        groundswell.run(TEXT, fail_if=["p99 > 1"])
    with pytest.raises(groundswell.UsageError, match="nowhere.toml"):
        groundswell.run("nowhere.toml")


def test_a_condition_that_holds_is_told_and_is_no_exception(here):
    crossed = groundswell.run(TEXT, fail_if=["poisson:p50.seconds > 0"])
    assert any(m.startswith("failed: poisson:p50.seconds > 0") for m in crossed.messages)


def test_the_same_call_again_reads_what_is_there(here):
    first = groundswell.run(TEXT)
    before = (first.directory / "manifest.json").stat().st_mtime_ns
    second = groundswell.run(TEXT)
    assert second.directory == first.directory
    assert (second.directory / "manifest.json").stat().st_mtime_ns == before
    other = groundswell.run(TEXT, network__rate="20Mbit")
    assert other.directory != first.directory
    assert 'rate = "20Mbit"' in (other.directory / "experiment.toml").read_text()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (True, "true"),
        (3, "3"),
        (0.25, "0.25"),
        ('a"b', '"a\\"b"'),
        (["1MB", "2MB"], '["1MB", "2MB"]'),
        (b.CodelQdisc(target="5ms"), '{"kind" = "codel", "target" = "5ms"}'),
    ],
)
def test_values_are_written_as_toml(given, text):
    assert _experiment.value(given) == text
    parsed = tomli.loads(f"x = {text}")["x"]
    assert parsed == (given.to_dict() if isinstance(given, b.CodelQdisc) else given)


def test_progress_is_reported_and_ends_with_all_runs(here):
    seen = []
    groundswell.run(TEXT, progress=seen.append, run__duration="20s", fresh=True)
    assert seen and all(0 <= p.done <= p.runs for p in seen)
    assert seen[-1].stage == "running"


LONG = TEXT.replace('duration = "5s"', 'duration = "2000s"').replace("replications = 2", "replications = 50")


def test_ctrl_c_ends_the_program_which_keeps_what_is_finished(here):
    script = f"import groundswell\ngroundswell.run({LONG!r}, output='long', progress=lambda p: print(p.done, flush=True))"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        child.stdout.readline()
        program = subprocess.run(["ps", "--ppid", str(child.pid), "-o", "pid="], capture_output=True, text=True).stdout.split()
        child.send_signal(signal.SIGINT)
        try:
            _, said = child.communicate(timeout=60)
        finally:
            child.kill()
    assert "KeyboardInterrupt" in said and child.returncode != 0
    assert program and not pathlib.Path(f"/proc/{program[0]}").exists()
    assert (here / "long" / "manifest.json").is_file()


def test_a_parent_that_is_killed_leaves_no_program_behind(here):
    script = f"import groundswell\ngroundswell.run({LONG!r}, output='long', progress=lambda p: print(p.done, flush=True))"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as child:
        child.stdout.readline()
        [program] = subprocess.run(["ps", "--ppid", str(child.pid), "-o", "pid="], capture_output=True, text=True).stdout.split()
        child.kill()
    for _ in range(300):
        if not pathlib.Path(f"/proc/{program}").exists():
            return
        time.sleep(0.1)
    os.kill(int(program), signal.SIGKILL)
    pytest.fail("the program went on without whoever started it")


def test_models_are_listed_and_have_charts():
    models = groundswell.models()
    assert "access-link" in models["name"].to_list() and models["down_bps"].min() > 0
    model = groundswell.Model("access-link")
    assert model.summary["sessions"] > 0
    for name in ("sizes", "rtts", "load", "scales"):
        assert model.chart(name).to_dict()["$schema"]


def test_a_model_is_learnt_from_the_packets_of_a_run(here):
    packets = groundswell.run(TEXT, packets=True, output=here / "kept", run__replications=1)
    [trace] = (packets.directory / "packets").glob("*-none-*.pcapng")
    model = groundswell.learn(trace, here / "mine.json.zst", note="made here")
    assert model.summary["tcp_connections"] > 0 and model.summary["note"] == "made here"


def test_a_study_has_a_ledger_and_charts(here):
    study = groundswell.study("buffers", quick=True, seeds=1, output=here / "study")
    assert {"id", "claim", "verdict"} <= set(study.ledger.columns) and study.ledger.height > 0
    name = next(iter(study.figures))
    assert study.chart(name).to_dict()["title"]
    with pytest.raises(groundswell.UsageError, match="no figure"):
        study.chart("nothing")
    assert "<html" in study.report().html


def test_builders_and_pages_are_what_the_program_says():
    for script in ("python-types", "reference"):
        subprocess.run([sys.executable, str(ROOT / "scripts" / script), "--check"], check=True)


def test_the_package_is_typed():
    pyright = shutil.which("pyright", path=os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]))
    if pyright is None:
        assert not os.environ.get("CI"), "pyright is missing"
        pytest.skip("pyright is missing")
    done = subprocess.run([pyright, "--pythonpath", sys.executable, "-p", str(ROOT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_where_there_is_no_program_the_exception_says_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.delenv("SWELL")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(_process.sysconfig, "get_path", lambda *a: str(tmp_path))
    with pytest.raises(groundswell.BinaryNotFound, match="pip install"):
        groundswell.binary()


# Sweeps.

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
        while more := plan.next(SimpleNamespace(replications=n, widest=widest)):
            # A batch has at least two replications unless only one is left.
            assert more >= 2 or n + more == most
            n += more
        assert n == most
    assert plan.next(SimpleNamespace(replications=1, widest=0.1)) == 0


def test_a_path_may_contain_an_equals_sign(here):
    (here / "rate=10").mkdir()
    for path in ("rate=10/mine.toml", "rate=10/mine"):
        (here / path).write_text(TEXT)
        source = _experiment.Source.of(path)
        assert source.path == here / path and source.text == TEXT
    assert _experiment.Source.of(TEXT).path is None
    assert _experiment.Source.of('preset = "x.toml"').path is None
    with pytest.raises(groundswell.UsageError, match="No such file"):
        _experiment.Source.of("rate=10/missing.toml")


def test_a_file_that_is_not_utf_8_is_an_error_with_its_place(here):
    (here / "latin.toml").write_bytes('name = "Köln"'.encode("latin-1"))
    with pytest.raises(groundswell.UsageError, match="byte 9 is not UTF-8"):
        _experiment.Source.of("latin.toml")


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


def test_several_directories_are_joined_only_where_they_belong_together(run, here):
    other = groundswell.run(TEXT, output=here / "other", run__seed=3)
    apart = groundswell.run(TEXT, output=here / "apart", network__rate="8Mbit", run__seed=3)
    whole = groundswell.run(TEXT, output=here / "whole", run__replications=4)
    joined = groundswell.Run(run.directory, other.directory)
    for name in groundswell.TABLES:
        # Row by row: sorted by foreground, background and replication, as docs/results.md says.
        assert joined.table(name).collect().equals(whole.table(name).collect()), name
    with pytest.raises(groundswell.UsageError, match="differs"):
        groundswell.Run(run.directory, apart.directory).requests
    with pytest.raises(groundswell.UsageError, match="seed 1"):
        groundswell.Run(run.directory, run.directory).requests
    # A comparison is of directories: it would leave all but the first out.
    with pytest.raises(groundswell.UsageError, match="several directories"):
        groundswell.compare(joined, apart)


def test_grouped_tables_can_be_pandas(run):
    groups = run.requests.group_by("background", maintain_order=True)
    for made in (groups.agg(pl.len()), groups.len(), groups.head(1), groups.tail(1)):
        assert made.to_pandas()["background"].unique().tolist() == ["none", "poisson"]
    with pytest.raises(groundswell.UsageError, match="nothing.parquet is not there"):
        run.columns("nothing")


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


def test_a_single_condition_needs_no_list(here):
    held = groundswell.run(TEXT, fail_if="poisson:p50.seconds > 0")
    assert any(m.startswith("failed: poisson:p50.seconds > 0") for m in held.messages)


def test_commands_to_run_under_traffic_are_lists_or_lines(monkeypatch, here):
    called = []

    def call(arguments, **_):
        called.append(arguments[5:])
        raise groundswell.Interrupted("enough")

    monkeypatch.setattr(_process, "call", call)
    for command, compare, expected in (
        ("curl -s 'http://server/a b'", True, ["--compare", "--", "curl", "-s", "http://server/a b"]),
        (["true"], 3, ["--compare", "3", "--", "true"]),
        ("true", False, ["--", "true"]),
    ):
        with pytest.raises(groundswell.Interrupted):
            groundswell.under("access-link", command, compare=compare)
        assert called[-1] == expected
    with pytest.raises(groundswell.UsageError, match="no command"):
        groundswell.under("access-link", "")


def test_a_wrong_program_is_told(monkeypatch, here):
    other = here / "other"
    other.write_text("#!/bin/sh\necho hello\n")
    for path, message in ((here / "missing", "No such file"), (other, "Permission denied")):
        monkeypatch.setenv("SWELL", str(path))
        with pytest.raises(groundswell.BinaryNotFound, match=message):
            groundswell.models()
    other.chmod(0o755)
    with pytest.raises(groundswell.GroundswellError, match="printed no JSON: 'hello"):
        groundswell.models()


def test_what_is_no_model_or_experiment_is_refused(here):
    with pytest.raises(groundswell.UsageError, match="nosuch"):
        groundswell.Model("nosuch")
    with pytest.raises(groundswell.UsageError, match="empty string"):
        groundswell.run("")


def test_hints_name_arguments_and_not_options(run, here):
    with pytest.raises(groundswell.UsageError) as wrong:
        groundswell.run(TEXT, output=run.directory, network__rate="8Mbit")
    assert wrong.value.hint == "`fresh=True` throws the old runs away; another `output` writes elsewhere"
