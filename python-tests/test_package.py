"""Tests the package `groundswell` against the program: its numbers, its errors, Ctrl-C, its types."""
import json
import math
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import time

import polars as pl
import pytest
import tomli

import groundswell
from conftest import skip
from groundswell import _experiment, _process
from groundswell import build as b
from small import TEXT

ROOT = pathlib.Path(__file__).resolve().parent.parent

@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return groundswell.run(TEXT, output=tmp_path_factory.mktemp("runs") / "small")


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
    # Requests that end before the warm-up are not drawn. Everything drawn was measured, and has six digits.
    assert drawn and all(min(abs(x - t) / t for t in times) <= 5e-6 for x in drawn)
    assert vl_convert.vegalite_to_svg(chart).startswith("<svg")


def test_a_chart_can_be_saved_as_a_page_that_needs_no_network(run, tmp_path):
    page = tmp_path / "cdf.html"
    run.chart("cdf").save(page, inline=True)
    assert 'src="http' not in page.read_text(encoding="utf-8")


def test_a_checkout_has_the_version_of_the_program():
    program = subprocess.run([groundswell.binary(), "--version"], capture_output=True, text=True, check=True)
    assert program.stdout.split()[-1] == groundswell.__version__


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
    # A row's answer is its own: an application that differs need not do so in every respect.
    assert both.differences["differs"].is_in(["yes", "no", "unclear"]).all()
    for _, rows in both.differences.group_by("foreground", "background"):
        assert rows["condition_differs"].n_unique() == 1
        assert "yes" in rows["differs"] or "yes" not in rows["condition_differs"]
    page = both.report(here / "compared.html").html
    assert "page beside poisson" in page and "10Mbit → 8Mbit" in page
    assert "<iframe" in both._repr_html_()
    with pytest.raises(groundswell.UsageError, match="do not differ in network.queue, but in network.rate"):
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
    # An older run is there, and is not the answer.
    (here / "old").mkdir()
    (here / "old/manifest.json").write_text("{}")
    with pytest.raises(groundswell.UsageError, match="nosuch") as wrong:
        groundswell.under("access-link", "true", compare=False, output="old", nosuch=True)
    assert wrong.value.code == 2


def test_lines_of_others_are_no_events(monkeypatch, here):
    lines = ['{"event": "message"}', '{"event": "error", "message": "theirs"}', '{"event": {}}', '{"event": "progress"}']
    (here / "lines").write_text("\n".join(lines) + "\n")
    program = here / "program"
    program.write_text("#!/bin/sh\ncat lines >&2\necho '[]'\n")
    program.chmod(0o755)
    monkeypatch.setenv("SWELL", str(program))
    ended = _process.call(["models"], progress=lambda _: None)
    assert ended.code == 0 and ended.messages == lines


def test_the_time_left_counts_no_runs_that_were_there_before():
    from groundswell._process import Progress
    from groundswell._progress import Line

    line = Line()
    assert line(Progress("measuring", 1, 2, 30)) == "measuring: 1 of 2 runs"
    assert line(Progress("running", 80, 100, 60)) == "running: 80 of 100 runs"
    assert line(Progress("running", 85, 100, 70)) == "running: 85 of 100 runs, about 30 s left"


def test_a_condition_that_holds_is_told_and_is_no_exception(here):
    crossed = groundswell.run(TEXT, fail_if=["poisson:p50.seconds > 0"])
    assert any(m.startswith("failed: poisson:p50.seconds > 0") for m in crossed.messages)


def test_without_an_experiment_the_quick_start_is_run(here):
    ran = groundswell.run(run__replications=2, run__duration="3s", run__warmup="1s")
    assert ran.directory.name.startswith("quickstart-")
    assert 'name = "quickstart"' in (ran.directory / "experiment.toml").read_text()


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


def test_an_exception_of_progress_stops_the_program_and_reaches_the_caller(here):
    # In a process of its own, which can be ended if it hangs.
    script = f"import groundswell\ngroundswell.run({LONG!r}, output='long', progress=lambda p: 1 / 0)"
    done = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
    # The program has ended: nobody holds the directory.
    assert groundswell.run(TEXT, output="long", fresh=True).verdict.replications == 2


def test_a_run_is_found_from_another_directory_and_is_never_stale(here, monkeypatch):
    run = groundswell.run(TEXT, output="here")
    before = run.verdict.raw
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")
    assert run.requests.collect().height > 0 and run.verdict.raw is before
    groundswell.run(TEXT, output=run.directory, fresh=True, run__replications=3)
    assert run.verdict.replications == 3 and len(run.manifest["cells"]) == 2 * 3


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
    assert model.private is None
    private = groundswell.learn(trace, here / "private.json", private=0.01)
    # What noise did to the load is known only to whoever learnt it.
    far = not 0.5 <= private.private["bytes_ratio"] <= 2
    assert any("private-load" in w for w in private.warnings) == far
    assert set(private.doubts) <= set(private.warnings)
    with pytest.raises(groundswell.UsageError, match="over the input"):
        groundswell.learn(trace, trace)


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


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_the_package_is_typed(version):
    pyright = shutil.which("pyright", path=os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]))
    if pyright is None:
        skip("pyright")
    done = subprocess.run([pyright, "--pythonpath", sys.executable, "-p", str(ROOT), "--pythonversion", version], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_where_there_is_no_program_the_exception_says_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.delenv("SWELL")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(_process.sysconfig, "get_path", lambda *a: str(tmp_path))
    with pytest.raises(groundswell.BinaryNotFound, match="pip install"):
        groundswell.binary()


# Sweeps.

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


def test_a_single_condition_needs_no_list(here):
    held = groundswell.run(TEXT, fail_if="poisson:p50.seconds > 0")
    assert any(m.startswith("failed: poisson:p50.seconds > 0") for m in held.messages)


def test_commands_to_run_under_traffic_are_lists_or_lines(monkeypatch, here):
    called, places = [], []

    def call(arguments, **_):
        called.append(arguments[5:])
        places.append(arguments[4])
        raise groundswell.Interrupted("enough")

    monkeypatch.setattr(_process, "call", call)
    # What was kept stays: the program may have changed since.
    (here / "runs" / "under-true").mkdir(parents=True)
    for command, compare, expected in (
        ("curl -s 'http://server/a b'", True, ["--compare", "--", "curl", "-s", "http://server/a b"]),
        (["true"], 3, ["--compare", "3", "--", "true"]),
        ("true", False, ["--", "true"]),
    ):
        with pytest.raises(groundswell.Interrupted):
            groundswell.under("access-link", command, compare=compare)
        assert called[-1] == expected
    assert places == ["runs/under-curl", "runs/under-true-2", "runs/under-true-2"]
    with pytest.raises(groundswell.UsageError, match="`output`"):
        groundswell.under("access-link", "true", resume=True)
    with pytest.raises(groundswell.UsageError, match="no command"):
        groundswell.under("access-link", "")
    with pytest.raises(groundswell.UsageError, match="No closing quotation"):
        groundswell.under("access-link", "echo 'a")
    with pytest.raises(groundswell.UsageError, match="Harpoon"):
        groundswell.learn("x.pcap", "h.xml", flows=True)
    with pytest.raises(groundswell.UsageError, match="no trace"):
        groundswell.learn([])
    (here / "file").write_text("")
    with pytest.raises(groundswell.UsageError, match="File exists|Not a directory"):
        groundswell.run(TEXT, output="file/below/run")
    with pytest.raises(groundswell.UsageError, match="None is no value"):
        groundswell.run(TEXT, network__rate=None)


def test_a_command_without_comparison_has_an_exit_code_of_its_own(monkeypatch, here):
    program = here / "program"
    program.write_text("#!/bin/sh\nmkdir -p out\necho '{}' > out/manifest.json\necho $RESULT\n$SAYS >&2\nexit 2\n")
    program.chmod(0o755)
    monkeypatch.setenv("SWELL", str(program))
    monkeypatch.setenv("SAYS", "true")
    monkeypatch.setenv("RESULT", '{"command": "under", "verdict": {}}')
    assert groundswell.under("none", "x", compare=False, output="out").directory.name == "out"
    # Without a result, what is in the directory is not one.
    monkeypatch.setenv("RESULT", "")
    with pytest.raises(groundswell.GroundswellError, match="no JSON"):
        groundswell.under("none", "x", compare=False, output="out")
    with pytest.raises(groundswell.UsageError):
        groundswell.under("none", "x", output="out")
    event = {"event": "error", "code": 2, "message": "wrong", "hints": []}
    (here / "event").write_text(json.dumps(event) + "\n")
    monkeypatch.setenv("SAYS", "cat event")
    with pytest.raises(groundswell.UsageError):
        groundswell.under("none", "x", compare=False, output="out")


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


def test_a_mistyped_argument_is_no_key_of_the_experiment(here):
    for name, meant in (("quik", "quick"), ("outptu", "output"), ("thread", "threads")):
        with pytest.raises(groundswell.UsageError, match=f"no argument `{name}`") as wrong:
            groundswell.run(TEXT, **{name: True})
        assert wrong.value.hint == f"did you mean `{meant}`?"
    with pytest.raises(groundswell.ExperimentError, match="known keys"):
        groundswell.run(TEXT, colour="red")


def test_a_directory_of_the_users_stays_as_it_is(here):
    (here / "mine").mkdir()
    (here / "mine/report.html").write_text("mine")
    for fresh in (False, True):
        with pytest.raises(groundswell.UsageError, match=r"write over report\.html") as wrong:
            groundswell.run(TEXT, output="mine", fresh=fresh)
        assert wrong.value.hint == "another `output` writes elsewhere, such as mine/small"
    assert [path.name for path in (here / "mine").iterdir()] == ["report.html"]


def test_hints_name_arguments_and_not_options(run, here):
    with pytest.raises(groundswell.UsageError) as wrong:
        groundswell.run(TEXT, output=run.directory, network__rate="8Mbit")
    assert wrong.value.hint == "`fresh=True` throws the old runs away; another `output` writes elsewhere"


def test_command_lines_in_hints_remain_as_they_are():
    hint = "--fresh runs anew; --resume takes them; `swell show --fresh x` shows them"
    error = groundswell.errors.of_event({"message": "earlier runs", "hint": hint, "code": 2})
    assert error.hint == "`fresh=True` runs anew; `resume=True` takes them; `swell show --fresh x` shows them"
