"""An experiment over a grid of settings, on any executor."""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import math
import os
import queue
import re
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

import polars as pl
import tomli


from groundswell._checks import check, no_conflict, no_key
from groundswell._executors import adapt
from groundswell._experiment import ExperimentLike, Source, assignments
from groundswell._grid import Grid, cost, different, narrow, points
from groundswell._packs import PACK, find, pack, there, unpack
from groundswell._results import Run, Verdict
from groundswell._show import altair_chart
from groundswell._worker import LOOK, abandon, stop_file, sweep_up, work
from groundswell.errors import GroundswellError, SweepError, UsageError

if TYPE_CHECKING:
    import altair as alt

BATCH = 5
"""Replications of a first batch: the fewest of which intervals are what they claim."""

@dataclass
class Cell:
    """A point of the grid."""

    index: int
    """Its number, in the order of the grid."""
    settings: Mapping[str, object]
    """What it sets."""
    batches: list[Path] = field(default_factory=list[Path], repr=False)
    """Where the run directories of its batches are if they are not packed, in the order of their seeds."""
    done: bool = False
    """Whether it is finished."""
    attempts: int = 0
    """Batches that were begun, failed ones included."""
    error: BaseException | None = None
    """Why it failed for good."""
    _verdict: bytes | None = field(default=None, repr=False)

    @property
    def verdict(self) -> Verdict | None:
        """What its runs say so far."""
        # Thousands of cells would fill the memory with verdicts that nobody reads.
        return None if self._verdict is None else Verdict(json.loads(zlib.decompress(self._verdict)))

    @verdict.setter
    def verdict(self, verdict: Verdict | None) -> None:
        self._verdict = None if verdict is None else zlib.compress(json.dumps(verdict.raw).encode())

    @property
    def directories(self) -> list[Path]:
        """Run directories of its batches, in the order of their seeds. Those of a long sweep are packed; they are put back
        where they were."""
        for place in self.batches:
            unpack(place)
        return list(self.batches)

    @property
    def run(self) -> Run:
        """Its runs, all batches combined. Raises `UsageError` if it has none."""
        if not self.batches:
            raise UsageError(f"cell {self.index} has no runs", "its `error` says why", 2)
        # The verdict is known, and need not be computed again to join tables.
        return Run.known(self.verdict, *self.directories)

    @property
    def name(self) -> str:
        """The name of its directory: the same settings have the same in every grid."""
        settings = "\n".join(sorted(assignments(self.settings)))
        return f"cell-{hashlib.sha256(settings.encode()).hexdigest()[:10]}"

    @property
    def replications(self) -> int:
        """Replications so far."""
        verdict = self.verdict
        return 0 if verdict is None else verdict.replications


class Sweep(Sequence[Cell]):
    """The cells of a sweep, in the order of the grid."""

    directory: Path
    """Where its runs are."""

    def __init__(self, directory: Path, cells: Sequence[Cell]) -> None:
        self.directory, self._cells = directory, list(cells)

    @overload
    def __getitem__(self, index: int) -> Cell: ...

    @overload
    def __getitem__(self, index: slice) -> list[Cell]: ...

    def __getitem__(self, index: int | slice) -> Cell | list[Cell]:
        return self._cells[index]

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells)

    @property
    def results(self) -> pl.DataFrame:
        """The results: a row for each cell, application, background and percentile, with the cell's settings. A setting
        that a cell leaves to the experiment is null. One that is called as a column of results is `settings.NAME`: a grid
        of whole lists of backgrounds is in `settings.background`."""
        columns = self._columns()
        settings = {
            # One kind of value for all cells, so that their rows can be joined.
            column: pl.Series(column, _alike([cell.settings.get(key) for cell in self._cells]), strict=False)
            for key, column in columns.items()
        }
        verdicts = ((place, cell.index, cell.verdict) for place, cell in enumerate(self._cells))
        frames = [
            verdict.slowdown().select(
                pl.lit(index).alias("cell"),
                *(pl.lit(series[place], dtype=series.dtype).alias(column) for column, series in settings.items()),
                pl.all(),
            )
            for place, index, verdict in verdicts
            if verdict is not None
        ]
        return pl.concat(frames, how="vertical_relaxed") if frames else pl.DataFrame()

    def save(self) -> None:
        """Writes the results to `results.parquet` in the directory: to open them again, nothing else need be read."""
        partial = self.directory / f".results.{uuid.uuid4().hex[:8]}"
        try:
            self.results.write_parquet(partial)
            partial.replace(self.directory / "results.parquet")
        except OSError as error:
            raise UsageError(f"{error.filename or partial}: {error.strerror}", code=2) from error
        finally:
            partial.unlink(missing_ok=True)

    def _columns(self) -> dict[str, str]:
        """The column of each setting. Cells that are given one by one need not set the same keys."""
        keys = dict.fromkeys(key for cell in self._cells for key in cell.settings)
        taken = {"cell", *Verdict({"foregrounds": []}).slowdown().columns}
        return {key: f"settings.{key}" if key in taken else key for key in keys}

    @property
    def replications(self) -> int:
        """Replications of all cells."""
        return sum(cell.replications for cell in self._cells)

    def chart(
        self, x: str, y: str, *, percentile: float = 0.95, background: str | None = None, foreground: str | None = None
    ) -> alt.TopLevelMixin:
        """A heat map of the slowdown over two settings, with the answer in each field. There is a column of panels for
        each background, and a row for each application and each value of the other settings.

        Raises `UsageError` for what is not in the results, or if there is nothing to draw."""
        rows, columns = self.results, self._columns()
        if rows.is_empty():
            raise UsageError("no cell has results to draw", code=2)
        axes = [_one_of("setting", name.replace("__", "."), list(columns)) for name in (x, y)]
        for column, wanted in (("percentile", percentile), ("background", background), ("foreground", foreground)):
            if wanted is not None:
                there = rows[column].unique(maintain_order=True).to_list()
                rows = rows.filter(pl.col(column) == _one_of(column, wanted, there))
        rows = rows.filter(pl.col("slowdown").is_not_null())
        if rows.is_empty():
            raise UsageError("there is no slowdown to draw", "slowdowns are against a background of kind none", 2)
        others = ["foreground", *(column for key, column in columns.items() if key not in axes)]
        varied = [column for column in others if rows[column].n_unique() > 1]
        labels = [pl.lit(f"{column} = ") + pl.col(column).cast(pl.String).fill_null("null") for column in varied]
        rows = rows.with_columns((pl.concat_str(labels, separator=", ") if labels else pl.lit("")).alias("panel"))
        places = [columns[axis] for axis in axes]
        rows = rows.select(list(dict.fromkeys([*places, "background", "panel", "slowdown", "matters"])))
        if rows.select(set([*places, "background", "panel"])).is_duplicated().any():
            raise UsageError("several cells have the same settings: one would hide another", code=2)
        title = f"p{percentile * 100:g} against none"
        where = {
            axis: {"field": _escaped(column), "type": "ordinal", "title": name, "sort": None}
            for axis, column, name in zip("xy", places, axes)
        }
        shade = {"field": "slowdown", "type": "quantitative", "title": title, "scale": {"type": "log", "scheme": "blues"}, "legend": {"format": ".3~g"}}
        facet: dict[str, Any] = {"column": {"field": "background", "type": "nominal", "sort": None}}
        if labels:
            facet["row"] = {"field": "panel", "type": "nominal", "title": None, "sort": None}
        return altair_chart(
            {
                "data": {"values": rows.to_dicts()},
                "facet": facet,
                "spec": {
                    "width": {"step": 70},
                    "height": {"step": 34},
                    "encoding": where,
                    "layer": [
                        {"mark": "rect", "encoding": {"color": shade}},
                        {"mark": "text", "encoding": {"text": {"field": "matters", "type": "nominal"}}},
                    ],
                },
            }
        )

    def __repr__(self) -> str:
        done = sum(cell.done for cell in self._cells)
        return f"<Sweep {self.directory}: {done} of {len(self)} cells, {self.replications} replications>"


def sweep(
    experiment: ExperimentLike,
    grid: Grid,
    executor: Any = None,
    *,
    output: str | os.PathLike[str] | None = None,
    replications: int | None = None,
    until: str | float | None = None,
    most: int = 100,
    retries: int = 2,
    on_result: Callable[[Cell], None] | None = None,
    **unknown: object,
) -> Sweep:
    '''Runs `experiment` at every point of `grid`.

    `grid` has values by key, `{"network.rate": ["10Mbit", "20Mbit"], "network.delay": ["5ms", "50ms"]}`, for all
    combinations; or it is a list of dictionaries, one per cell. Equal points are one cell. Two underscores stand for a dot in keys. With `run.seed`
    a cell begins with this seed.

    ```python
    import groundswell

    experiment = """name = "small"
    network = { rate = "10Mbit", rtt = "20ms" }
    foreground = [{ name = "page", kind = "web", object = "20kB" }]
    background = [{ name = "none", kind = "none" }, { name = "cbr", kind = "cbr", rate = "5Mbit" }]
    run = { replications = 2, warmup = "1s", duration = "5s" }
    """
    swept = groundswell.sweep(experiment, {"network.rate": ["10Mbit", "20Mbit"]})
    print(swept.results)
    ```

    `executor` is a `concurrent.futures` executor, such as a pool of processes or Dask's `client.get_executor()`, an
    executor of submitit, or the module `ray`. A number means that many concurrent runs on this machine; the default is
    the number of processors, and one if anything is emulated: emulated runs at once would disturb each other. Workers on
    other machines need this package and the same `output` directory.

    With `until="±10 %"`, or `until=0.1`, a cell runs in batches until the widest interval that affects the verdict is
    that narrow, or it has `most` replications. Otherwise it has `replications` (default: the experiment's own number).
    If a background matches the mean rate of another over all replications, batches would match different rates; such a
    cell runs anew with more replications.

    A failed batch is retried up to `retries` times, unless its executor is broken, as a pool of processes is when one of
    them dies: the same call then continues. Long cells come first. `on_result` is
    called with a cell whenever it has a new verdict. Completed batches are kept: the same call continues from there, and
    so does one with other cells of the same experiment. Batches of other models, traces or versions of the program are
    refused. Emulated batches are kept, too: programs, their files and their environment must be as they were, or `output`
    another one. Ctrl-C stops the workers, too.

    Raises `UsageError`, or `ExperimentError` with the position, before any cell runs if no cell can: a key is wrong. Raises
    `SweepError` at the end if cells failed permanently; it has the `sweep` with the results of the others.'''
    no_key(unknown)
    source = Source.of(experiment)
    # Equal points would be one directory, in which two workers would be in each other's way.
    cells = [Cell(index, settings) for index, settings in enumerate(different(points(grid)))]
    if not cells:
        raise UsageError("the grid has no cells", "a key has no values, or the list is empty", 2)
    if output is None:
        output = Path("runs") / f"sweep-{source.name()}-{source.fingerprint()}"
    directory = Path(output).absolute()
    no_conflict(cells, replications, until)
    for name, number in (("replications", replications), ("most", most), ("executor", executor)):
        if isinstance(number, int) and number < 1:
            raise UsageError(f"{name}={number} is less than 1", code=2)
    plan = _Plan(source, narrow(until), replications, most)
    for cell in cells:
        plan.first(cell.settings)
    check(source, cells)
    workers = (1 if _emulated(source, cells) else os.cpu_count() or 1) if executor is None else executor
    owned = isinstance(workers, int)
    # The program runs in its own process, so threads suffice to wait for it.
    pool = concurrent.futures.ThreadPoolExecutor(workers) if isinstance(workers, int) else adapt(workers)
    _open(directory, source, cells)
    job = _Job(source.text, str(source.path) if source.path else None, os.getcwd(), uuid.uuid4().hex[:8])
    try:
        _drive(pool, job, plan, directory, cells, retries, on_result)
    finally:
        if owned:
            pool.shutdown(cancel_futures=True)
            stop_file(directory, job.token).unlink(missing_ok=True)
    sweep_up(directory, job.token)
    sweep = Sweep(directory, cells)
    sweep.save()
    failed = {cell.index: cell.error for cell in cells if cell.error is not None}
    if failed:
        first = next(iter(failed.values()))
        raise SweepError(f"{len(failed)} of {len(cells)} cells failed; the first: {first}", failed, sweep)
    return sweep


@dataclass(frozen=True)
class _Job:
    """The experiment in the form that a worker needs."""

    text: str
    path: str | None
    cwd: str
    token: str
    """Distinguishes this sweep from others in the same directory."""


@dataclass(frozen=True)
class _Plan:
    """Decides when a cell has enough replications."""

    source: Source
    until: float | None
    replications: int | None
    most: int

    def first(self, settings: Mapping[str, object]) -> tuple[int, int]:
        """The first seed of a cell and the size of its first batch."""
        run = _run_table(self.source)
        seed = _whole("run.seed", settings.get("run.seed", run.get("seed", 1)))
        if self.until is not None:
            return seed, min(BATCH, self.most)
        own = settings.get("run.replications", run.get("replications", 10))
        return seed, _whole("run.replications", own) if self.replications is None else self.replications

    def next(self, verdict: Verdict, ran: int, anew: bool = False) -> int:
        """How many more replications a cell needs after `ran`; 0 if it has enough. The verdict may have fewer than ran,
        because it leaves out late runs. `anew` says that those that there are have to run again."""
        n = verdict.replications
        # More replications narrow no interval where none is.
        if self.until is None or verdict.widest <= self.until or not verdict.compared:
            return 0
        # Intervals narrow with the square root of the replications. An estimate from few may at most double them.
        wanted = 2 * n if math.isinf(verdict.widest) else math.ceil(n * (verdict.widest / self.until) ** 2)
        # Where all run again, small steps would cost much more than they save.
        least = math.ceil(1.5 * n) if anew else n + 2
        return min(min(max(wanted, least), 2 * n) - n, self.most - ran)


def _drive(
    pool: concurrent.futures.Executor,
    job: _Job,
    plan: _Plan,
    directory: Path,
    cells: Sequence[Cell],
    retries: int,
    on_result: Callable[[Cell], None] | None,
) -> None:
    """Submits batches until every cell is done."""
    pending: dict[concurrent.futures.Future[str], tuple[Cell, int, int, int]] = {}
    # Batches that stand by themselves, the oldest first.
    shelf: dict[Path, None] = {}
    # `concurrent.futures.wait` takes the locks of futures each time. Ctrl-C there may leave one locked, and then the
    # pool waits for it for ever.
    finished: queue.SimpleQueue[concurrent.futures.Future[str]] = queue.SimpleQueue()
    inputs: dict[str, str] = {}

    def submit(cell: Cell, seed: int, count: int, left: int) -> None:
        cell.attempts += 1
        sets = {**cell.settings, "run.seed": seed, "run.replications": count}
        place = str(directory / cell.name / f"seeds-{seed}-{seed + count - 1}")
        try:
            later = seed > plan.first(cell.settings)[0]
            future = pool.submit(work, job.text, job.path, job.cwd, assignments(sets), place, job.token, later)
        except concurrent.futures.BrokenExecutor as error:
            # No worker is left to run it.
            cell.error = error
            return
        pending[future] = (cell, seed, count, left)
        future.add_done_callback(finished.put)

    def judge(cell: Cell, place: Path, seed: int, count: int) -> tuple[int, int]:
        """Takes a batch into account. Returns the first seed and the size of the next one; its size is 0 after the last."""
        anew = plan.until is not None and _matches_means(place)
        directories = [place] if anew else sorted([*cell.directories, place], key=_first_seed)
        for used in directories:
            shelf.pop(used, None)
            shelf[used] = None
        # Not `cell.run`, which has the verdict of the batches before. The program refuses batches of unlike inputs.
        verdict = Run(*directories).verdict
        if verdict.raw["foregrounds"] and verdict.replications == 0:
            cell.batches = directories
            hint = "its `run` has what there is; where runs were late, run fewer at once"
            raise UsageError(f"cell {cell.index}: no replication counts; the verdict says why", hint, 1)
        # Nor can cells be compared if they are of unlike inputs.
        manifest = Run(place).manifest
        files = {m["source"]: m["hash"] for m in manifest["models"].values() if m["source"] != "bundled"}
        for what, found in {**files, "the version of the program": manifest["version"]}.items():
            if inputs.setdefault(what, found) != found:
                raise UsageError(f"{what} has changed during the sweep", "the same call says which batches are old", 2)
        cell.verdict, cell.batches = verdict, directories
        first = plan.first(cell.settings)[0]
        more = plan.next(verdict, seed + count - first, anew)
        if anew and more:
            return first, seed + count - first + more
        return seed + count, more

    try:
        for cell in sorted(cells, key=lambda c: -cost(plan.source, c.settings)):
            seed, count = plan.first(cell.settings)
            submit(cell, seed, count, retries)
        while pending:
            try:
                future = finished.get(timeout=LOOK)
            except queue.Empty:
                continue
            cell, seed, count, left = pending.pop(future)
            try:
                then, more = judge(cell, Path(future.result()), seed, count)
            except UsageError as error:
                batches = [*cell.batches, directory / cell.name / f"seeds-{seed}-{seed + count - 1}"]
                if left > 0 and not all(map(there, batches)) and all(map(find, batches)):
                    # Another sweep in this directory has packed them meanwhile.
                    submit(cell, seed, count, left - 1)
                else:
                    # A retry would fail the same way.
                    cell.error = error
            except Exception as error:
                if left > 0 and not isinstance(error, concurrent.futures.BrokenExecutor):
                    submit(cell, seed, count, left - 1)
                else:
                    cell.error = error
            else:
                cell.done = more == 0
                if on_result is not None:
                    on_result(cell)
                if more:
                    submit(cell, then, more, retries)
            if len(shelf) >= 2 * PACK:
                oldest = list(shelf)[:PACK]
                pack(oldest, job.token)
                for place in oldest:
                    del shelf[place]
    except BaseException:
        abandon(pending, stop_file(directory, job.token))
        raise


def _open(directory: Path, source: Source, cells: Sequence[Cell]) -> None:
    """Creates the directory of a sweep; raises an error if it belongs to another experiment, or cannot be written."""
    note = directory / "sweep.json"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        there: dict[str, Any] = {"experiment": source.text, "cells": {}}
        if note.is_file():
            there = json.loads(note.read_text(encoding="utf-8"))
        if there["experiment"] != source.text:
            raise UsageError(f"{directory} holds another sweep: one of another experiment", "name another output", 2)
        there["cells"].update((cell.name, dict(cell.settings)) for cell in cells)
        partial = note.with_name(f".sweep.{uuid.uuid4().hex[:8]}")
        partial.write_text(json.dumps(there, default=str, indent=1), encoding="utf-8")
        partial.replace(note)
    except OSError as error:
        raise UsageError(f"{error.filename or directory}: {error.strerror}", code=2) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{note} is damaged", "name another output, or delete that file", 2) from error


def _emulated(source: Source, cells: Sequence[Cell]) -> bool:
    """Whether any run is emulated, in real time."""
    own = _table(source).get("backend")
    return any(cell.settings.get("backend", own) == "emulated" for cell in cells)


def _matches_means(directory: Path) -> bool:
    """Whether a run has a background whose rate is the mean of another over all replications."""

    def walk(value: object) -> bool:
        if isinstance(value, list):
            return any(map(walk, cast("list[object]", value)))
        if not isinstance(value, dict):
            return False
        table = cast("dict[str, object]", value)
        if str(table.get("rate", "")).startswith("match:") and table.get("match", "mean") == "mean":
            return True
        return any(map(walk, table.values()))

    return walk(tomli.loads((directory / "experiment.toml").read_text(encoding="utf-8")))


def _table(source: Source) -> Mapping[str, Any]:
    try:
        return tomli.loads(source.text)
    except tomli.TOMLDecodeError as error:
        raise GroundswellError(f"the experiment does not read: {error}", code=2) from error


def _run_table(source: Source) -> Mapping[str, Any]:
    run: object = _table(source).get("run")
    return cast("dict[str, Any]", run) if isinstance(run, dict) else {}


def _whole(key: str, given: object) -> int:
    try:
        return int(given)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError) as error:
        raise UsageError(f"{key}={given!r} is no whole number", code=2) from error


def _first_seed(directory: Path) -> int:
    return int(directory.name.split("-")[1])


def _alike(given: Sequence[object]) -> list[Any]:
    """Values of a column: numbers stay numbers and flags stay flags if there is nothing else, all others are text."""
    there = [value for value in given if value is not None]
    flags = [isinstance(value, bool) for value in there]
    if all(flags) or (not any(flags) and all(isinstance(value, (int, float)) for value in there)):
        return list(given)
    return [v if v is None or isinstance(v, str) else json.dumps(v, default=str) for v in given]


def _one_of(what: str, wanted: Any, there: Sequence[Any]) -> Any:
    """`wanted`, if it is there."""
    if wanted not in there:
        raise UsageError(f"no result has the {what} {wanted}", f"there are: {', '.join(map(str, there)) or 'none'}", 2)
    return wanted


def _escaped(name: str) -> str:
    # Vega-Lite interprets dots and brackets in field names as paths.
    return re.sub(r"([.\[\]])", r"\\\1", name)
