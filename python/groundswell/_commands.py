"""The commands of the program, as functions."""

from __future__ import annotations

import difflib
import itertools
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from groundswell import _process, _progress
from groundswell._experiment import ExperimentLike, Source, as_list, assignments
from groundswell._progress import Report
from groundswell._results import Comparison, Model, Run, Study, said
from groundswell.errors import GroundswellError, UsageError

PathLike = str | os.PathLike[str]


def run(
    experiment: ExperimentLike | None = None,
    *,
    output: PathLike | None = None,
    quick: bool = False,
    suite: bool | str = False,
    fresh: bool = False,
    resume: bool = False,
    packets: bool = False,
    threads: int | None = None,
    fail_if: str | Sequence[str] = (),
    progress: bool | Report | None = None,
    set: dict[str, object] | None = None,  # noqa: A002
    **overrides: object,
) -> Run:
    """Runs an experiment: every application with every background, on all processors.

    `experiment` is the text of a file, a path, a dictionary, or a builder of `groundswell.build`; without one the bundled
    quick start is run. Its keys can be changed with `overrides`, where two underscores stand for a dot, or with `set`, where
    dots are written:

    ```python
    import groundswell

    run = groundswell.run(quick=True, run__replications=2, run__duration="60s")
    print(run.verdict.matters)
    ```

    Without `output` the run directory is `runs/NAME-DIGITS`. The digits identify the experiment and its changes, so the
    same call again reads the existing results. An interrupted run continues where it stopped. Emulated runs of an earlier
    call are refused, because their programs may have changed: `fresh` runs anew, and `resume` takes them, if the program,
    its files and its environment are as they were.

    With `suite` the backgrounds are a series from none to the learnt one, or to the learnt one of this name, and
    `verdict.cheapest` is the cheapest one that is sufficient.

    `fail_if` is a condition such as `"p95.slowdown.high > 1.5"`, or a list of them; those that hold are in the result's
    `messages`.

    Raises `ExperimentError` with the position and a hint if the experiment is wrong, `UsageError` if the directory holds
    other runs, `GroundswellError` if a run fails,
    and `KeyboardInterrupt` after completed runs have been kept."""
    source = Source.quick_start() if experiment is None else Source.of(experiment)
    _no_argument(overrides)
    changed = assignments({**(set or {}), **overrides})
    if output is None:
        output = Path("runs") / f"{source.name()}-{source.fingerprint(sorted(changed), quick, packets, *([suite] if suite else []))}"
    directory = Path(output)
    _make(directory.parent)
    arguments: list[str] = ["run", *source.arguments(), "--json", "--output", str(directory)]
    arguments += [flag for flag, on in (("--quick", quick), ("--fresh", fresh), ("--resume", resume), ("--packets", packets)) if on]
    if suite:
        arguments += ["--suite" if suite is True else f"--suite={suite}"]
    if threads is not None:
        arguments += ["--threads", str(threads)]
    for assignment in changed:
        arguments += ["--set", assignment]
    for condition in [fail_if] if isinstance(fail_if, str) else fail_if:
        arguments += ["--fail-if", condition]
    with _progress.shown(progress) as report:
        ended = _process.call(arguments, progress=report, stdin=source.stdin(), accept=_process.ANSWERS)
    return Run(directory, messages=ended.messages)


ARGUMENTS = ("output", "quick", "suite", "fresh", "resume", "packets", "threads", "fail_if", "progress", "set")
"""The arguments of `run` that are no overrides."""


def _no_argument(overrides: Mapping[str, object]) -> None:
    """Raises an error for a mistyped argument of `run`, which would otherwise be taken for a key of the experiment."""
    for name in overrides:
        near = difflib.get_close_matches(name, ARGUMENTS, 1, 0.75)
        if near:
            raise UsageError(f"`run` has no argument `{name}`", f"did you mean `{near[0]}`?", 2)


def under(
    background: PathLike,
    command: str | Sequence[str],
    *,
    compare: int | bool = True,
    output: PathLike | None = None,
    progress: bool | Report | None = None,
    **options: object,
) -> Run:
    """Runs a program, unmodified, behind an emulated link: alone, with Poisson packets and with `background`, `compare`
    times each (five by default). With `compare=False` it runs once, with `background`. What the program prints is in the
    directory `output` of the run. Linux only; `swell doctor` says what is missing.

    Without `output` the run directory is `runs/under-NAME`, or the first of `runs/under-NAME-2` and so on that is new. A
    complete comparison is replaced only with `fresh=True`; an interrupted one goes on in its `output` with `resume=True`.

    `command` is a list, or a line that is split as a shell splits it. No shell runs it.

    `options` are those of `swell under`, with underscores: `rate="20Mbit"`, `delay="20ms"`, `server="python3 -m http.server"`.

    ```python
    import groundswell

    run = groundswell.under("none", "sleep 0.1", compare=2, rate="20Mbit", output="under")
    print(run.verdict.matters)
    ```
    """
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        raise UsageError(f"{command!r} does not split into words: {error}", "or give a list of words", 2) from error
    if not words:
        raise UsageError("there is no command to run", code=2)
    if output is None and (options.get("resume") or options.get("fresh")):
        raise UsageError("`resume` and `fresh` need the `output` that they are about", code=2)
    directory = Path(output) if output is not None else _numbered(Path("runs") / f"under-{Path(words[0]).name}")
    _make(directory.parent)
    arguments: list[str] = ["under", os.fspath(background), "--json", "--output", str(directory)]
    if compare is not False:
        arguments += ["--compare"] if compare is True else ["--compare", str(compare)]
    arguments += _options(options)
    # Without a comparison the exit code is that of the command, whatever it is.
    accept = None if compare is False else _process.ANSWERS
    with _progress.shown(progress) as report:
        ended = _process.call([*arguments, "--", *words], progress=report, accept=accept)
    # Whatever the exit code is: without a result, the directory may hold an older run.
    if not isinstance(result := ended.json(), dict) or "verdict" not in result:
        raise GroundswellError(f"`swell under` ended with code {ended.code} and without a result", code=ended.code)
    return Run(directory, messages=ended.messages)


def learn(
    traces: PathLike | Sequence[PathLike],
    output: PathLike | None = None,
    *,
    progress: bool | Report | None = None,
    **options: object,
) -> Model:
    """Learns a traffic model from packet traces, or a flow-level model from flow records.

    `options` are those of `swell learn`, with underscores: `name="campus"`, `note="CC BY 4.0"`, `inside=["192.0.2.0/24"]`,
    `flows=True`. The model is written to `output`, or to `NAME.json.zst` after the first trace. Its `warnings` and, with
    `private`, its `private` are what learning said; the latter is of the trace itself and not in the model.

    ```python
    import groundswell

    model = groundswell.learn("trace.pcap", name="mine")
    print(model.warnings)
    ```
    """
    files = as_list(traces)
    if not files:
        raise UsageError("there is no trace to learn from", code=2)
    if output is None:
        output = Path(f"{Path(files[0]).name.split('.')[0]}.json.zst")
    if Path(output).suffix == ".xml":
        raise UsageError(
            f"{os.fspath(output)}: Harpoon's configurations are no model to return",
            "`swell learn` writes them; a model is a .json or .json.zst file",
            2,
        )
    if options.get("through"):
        raise UsageError("through: three models are none to return", "`swell learn --through` writes them to a directory", 2)
    with _progress.shown(progress) as report:
        arguments = ["learn", *files, "--output", os.fspath(output), "--json", *_options(options)]
        learnt: dict[str, Any] = _process.call(arguments, progress=report).json()
    return Model(output, warnings=[said(w) for w in learnt["warnings"]], private=learnt.get("private"))


def study(
    name: PathLike,
    *,
    output: PathLike | None = None,
    quick: bool = False,
    seeds: int | None = None,
    progress: bool | Report | None = None,
    **options: object,
) -> Study:
    """Runs a study: a bundled one by name (`atlas`, `burstiness`, `filler`, `sensitivity`, `buffers`, `harpoon`) or a file of your own.

    ```python
    import groundswell

    study = groundswell.study("buffers", quick=True, seeds=1)
    print(study.ledger)
    ```
    """
    called = os.fspath(name)
    bundled = not called.endswith(".toml")
    directory = Path(output) if output is not None else Path("runs") / f"study-{Path(called).stem}{'-quick' * quick}"
    _make(directory.parent)
    arguments = ["study", called] if bundled else ["study", "file", called]
    arguments += ["--json", "--output", str(directory), *_options(options)]
    arguments += ["--quick"] if quick else []
    arguments += ["--seeds", str(seeds)] if seeds is not None else []
    with _progress.shown(progress) as report:
        ended = _process.call(arguments, progress=report)
    return Study(directory, ended.json())


def compare(first: Run | PathLike, *others: Run | PathLike, by: str | None = None) -> Comparison:
    """Compares the first run with the others: the verdict's statistics, run against run, with intervals.

    Replications with equal seeds are pairs. `by` names the intended difference, such as `"network.queue"`.

    Raises `UsageError` if anything else differs, if the runs have nothing in common to compare, or if a `Run` consists
    of several directories.

    ```python
    import groundswell

    runs = [groundswell.run(quick=True, run__replications=2, run__duration="60s", network__rate=r) for r in ("20Mbit", "40Mbit")]
    print(groundswell.compare(*runs, by="network.rate"))
    ```
    """
    return Comparison([r.only() if isinstance(r, Run) else r for r in (first, *others)], by)


def models() -> pl.DataFrame:
    """The bundled traffic models."""
    listed: list[dict[str, Any]] = _process.call(["models", "--json"]).json()
    rows = [
        {
            "name": m["name"],
            "kind": m["kind"],
            "duration_s": float(m["duration_s"]),
            "up_bps": float(m["mean_bps"][0]),
            "down_bps": float(m["mean_bps"][1]),
            "note": m["note"],
            "doubts": [w["code"] for w in m["warnings"]],
        }
        for m in listed
    ]
    return pl.DataFrame(rows)


def _numbered(first: Path) -> Path:
    """The directory, or the first with a number after its name that does not exist."""
    every = (first if n == 1 else first.with_name(f"{first.name}-{n}") for n in itertools.count(1))
    return next(directory for directory in every if not directory.exists())


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{error.filename or directory}: {error.strerror}", code=2) from error


def _options(options: dict[str, object]) -> list[str]:
    """Options of a command: `rate="20Mbit"` becomes `--rate 20Mbit`, `True` becomes a flag, a list repeats the option."""
    out: list[str] = []
    for key, given in options.items():
        flag = "--" + key.replace("_", "-")
        if given is True:
            out.append(flag)
        elif given is None or given is False:
            continue
        elif isinstance(given, (list, tuple)):
            for one in given:  # pyright: ignore[reportUnknownVariableType]
                out += [flag, str(one)]  # pyright: ignore[reportUnknownArgumentType]
        else:
            out += [flag, str(given)]
    return out
