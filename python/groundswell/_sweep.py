"""An experiment over a grid of settings, on any executor."""

from __future__ import annotations

import concurrent.futures
import itertools
import json
import math
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import polars as pl
import tomli

from groundswell import _process
from groundswell._executors import adapt
from groundswell._experiment import ExperimentLike, Source, assignments
from groundswell._results import Run, Verdict
from groundswell._show import altair_chart
from groundswell.errors import GroundswellError, SweepError, UsageError

if TYPE_CHECKING:
    import altair as alt

Grid = Mapping[str, Sequence[object]] | Sequence[Mapping[str, object]]
"""Values by key, every one with every other; or the cells themselves."""

BATCH = 5
"""Replications of a first batch: the fewest of which intervals are what they claim."""


@dataclass
class Cell:
    """A point of the grid."""

    index: int
    """Its number, in the order of the grid."""
    settings: Mapping[str, object]
    """What it sets."""
    directories: list[Path] = field(default_factory=list[Path])
    """Run directories of its batches, in the order of their seeds."""
    verdict: Verdict | None = None
    """What its runs say so far."""
    done: bool = False
    """Whether it is finished."""
    attempts: int = 0
    """Batches that were begun, failed ones included."""
    error: BaseException | None = None
    """Why it failed for good."""

    @property
    def run(self) -> Run:
        """Its runs, all batches combined."""
        run = Run(*self.directories)
        if self.verdict is not None:
            # It is known, and need not be computed again to join tables.
            run.verdict = self.verdict
        return run

    @property
    def replications(self) -> int:
        """Replications so far."""
        return 0 if self.verdict is None else self.verdict.replications


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
        that a cell leaves to the experiment is null."""
        # Cells that are given one by one need not set the same keys.
        keys = list(dict.fromkeys(key for cell in self._cells for key in cell.settings))
        frames = [
            cell.verdict.slowdown().select(
                pl.lit(cell.index).alias("cell"),
                *(pl.lit(_literal(cell.settings.get(key))).alias(key) for key in keys),
                pl.all(),
            )
            for cell in self._cells
            if cell.verdict is not None
        ]
        return pl.concat(frames, how="vertical_relaxed") if frames else pl.DataFrame()

    @property
    def replications(self) -> int:
        """Replications of all cells."""
        return sum(cell.replications for cell in self._cells)

    def chart(self, x: str, y: str, *, percentile: float = 0.95, background: str | None = None) -> alt.TopLevelMixin:
        """A heat map of the slowdown over two settings, with a panel for each background and the answer in each field."""
        x, y = x.replace("__", "."), y.replace("__", ".")
        rows = self.results.filter((pl.col("percentile") == percentile) & pl.col("slowdown").is_not_null())
        if background is not None:
            rows = rows.filter(pl.col("background") == background)
        title = f"p{percentile * 100:g} against none"
        where = {
            axis: {"field": _escaped(name), "type": "ordinal", "title": name, "sort": None}
            for axis, name in (("x", x), ("y", y))
        }
        shade = {"field": "slowdown", "type": "quantitative", "title": title, "scale": {"type": "log", "scheme": "blues"}}
        return altair_chart(
            {
                "data": {"values": rows.to_dicts()},
                "facet": {"column": {"field": "background", "type": "nominal"}},
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
) -> Sweep:
    """Runs `experiment` at every point of `grid`.

    `grid` has values by key, `{"network.rate": ["10Mbit", "20Mbit"], "network.delay": ["5ms", "50ms"]}`, for all
    combinations; or it is a list of dictionaries, one per cell. Two underscores stand for a dot in keys. With `run.seed`
    a cell begins with this seed.

    `executor` is a `concurrent.futures` executor, such as a pool of processes or Dask's `client.get_executor()`, an
    executor of submitit, or the module `ray`. A number means that many concurrent runs on this machine; the default is
    the number of processors. Workers on other machines need this package and the same `output` directory.

    With `until="±10 %"`, or `until=0.1`, a cell runs in batches until the widest interval that affects the verdict is
    that narrow, or it has `most` replications. Otherwise it has `replications` (default: the experiment's own number).

    A failed batch is retried up to `retries` times, even if its worker died. Long cells come first. `on_result` is
    called with a cell whenever it has a new verdict. Completed batches are kept: the same call continues from there.

    Raises `SweepError` at the end if cells failed permanently."""
    source = Source.of(experiment)
    cells = [Cell(index, settings) for index, settings in enumerate(_points(grid))]
    if output is None:
        output = Path("runs") / f"sweep-{source.name()}-{source.fingerprint([c.settings for c in cells])}"
    directory = Path(output).absolute()
    _no_conflict(cells, replications, until)
    for name, number in (("replications", replications), ("most", most)):
        if number is not None and number < 1:
            raise UsageError(f"{name}={number} is less than 1", code=2)
    plan = _Plan(source, _narrow(until), replications, most)
    _open(directory, source, cells)
    job = _Job(source.text, str(source.path) if source.path else None, os.getcwd())
    owned = executor is None or isinstance(executor, int)
    workers = (os.cpu_count() or 1) if executor is None else executor
    # The program runs in its own process, so threads suffice to wait for it.
    pool = concurrent.futures.ThreadPoolExecutor(workers) if isinstance(workers, int) else adapt(workers)
    try:
        _drive(pool, job, plan, directory, cells, retries, on_result)
    except BaseException:
        if owned:
            pool.shutdown(wait=False, cancel_futures=True)
            _process.interrupt_all()
        raise
    finally:
        if owned:
            pool.shutdown()
    for cell in cells:
        if cell.done:
            # Incomplete results of attempts whose worker died.
            for left in (directory / f"cell-{cell.index:05}").glob(".seeds-*"):
                shutil.rmtree(left, ignore_errors=True)
    failed = {cell.index: cell.error for cell in cells if cell.error is not None}
    if failed:
        first = next(iter(failed.values()))
        raise SweepError(f"{len(failed)} of {len(cells)} cells failed; the first: {first}", failed)
    return Sweep(directory, cells)


@dataclass(frozen=True)
class _Job:
    """The experiment in the form that a worker needs."""

    text: str
    path: str | None
    cwd: str


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
        seed = int(settings.get("run.seed", run.get("seed", 1)))  # pyright: ignore[reportArgumentType]
        if self.until is not None:
            return seed, min(BATCH, self.most)
        own = settings.get("run.replications", run.get("replications", 10))
        return seed, int(own) if self.replications is None else self.replications  # pyright: ignore[reportArgumentType]

    def next(self, verdict: Verdict, ran: int) -> int:
        """How many more replications a cell needs after `ran`; 0 if it has enough. The verdict may have fewer than ran,
        because it leaves out late runs."""
        n = verdict.replications
        if self.until is None or verdict.widest <= self.until:
            return 0
        # Intervals narrow with the square root of the replications. An estimate from few may at most double them.
        wanted = 2 * n if math.isinf(verdict.widest) else math.ceil(n * (verdict.widest / self.until) ** 2)
        return min(min(max(wanted, n + 2), 2 * n) - n, self.most - ran)


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

    def submit(cell: Cell, seed: int, count: int, left: int) -> None:
        cell.attempts += 1
        sets = {**cell.settings, "run.seed": seed, "run.replications": count}
        place = str(directory / f"cell-{cell.index:05}" / f"seeds-{seed}-{seed + count - 1}")
        try:
            future = pool.submit(work, job.text, job.path, job.cwd, assignments(sets), place)
        except concurrent.futures.BrokenExecutor as error:
            # No worker is left to run it.
            cell.error = error
            return
        pending[future] = (cell, seed, count, left)

    for cell in sorted(cells, key=lambda c: -cost(plan.source, c.settings)):
        seed, count = plan.first(cell.settings)
        submit(cell, seed, count, retries)
    while pending:
        finished, _ = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in finished:
            cell, seed, count, left = pending.pop(future)
            try:
                cell.directories.append(Path(future.result()))
            except UsageError as error:
                # A retry would fail the same way.
                cell.error = error
            except Exception as error:
                if left > 0 and not isinstance(error, concurrent.futures.BrokenExecutor):
                    submit(cell, seed, count, left - 1)
                else:
                    cell.error = error
            else:
                cell.directories.sort(key=_first_seed)
                # Not `cell.run`, which has the verdict of the batches before.
                cell.verdict = Run(*cell.directories).verdict
                more = plan.next(cell.verdict, seed + count - plan.first(cell.settings)[0])
                cell.done = more == 0
                if on_result is not None:
                    on_result(cell)
                if more:
                    submit(cell, seed + count, more, retries)


def work(text: str, path: str | None, cwd: str, changes: Sequence[str], place: str) -> str:
    """The task of a worker: runs a batch in a temporary directory and renames that when complete. Returns the final path."""
    final = Path(place)
    if (final / "manifest.json").is_file():
        return place
    final.parent.mkdir(parents=True, exist_ok=True)
    partial = final.with_name(f".{final.name}.{uuid.uuid4().hex[:8]}")
    arguments = ["run", path or "-", "--json", "--threads", "1", "--output", str(partial)]
    for change in changes:
        arguments += ["--set", change]
    try:
        _process.call(arguments, stdin=None if path else text, cwd=cwd, accept=_process.ANSWERS)
        try:
            partial.rename(final)
        except OSError:
            # Another attempt finished first with the same runs.
            if not (final / "manifest.json").is_file():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return place


def cost(source: Source, settings: Mapping[str, object]) -> float:
    """Approximate cost of a run of a cell in arbitrary units: the bits that the link can carry meanwhile."""
    try:
        table: dict[str, Any] = tomli.loads(source.text)
    except tomli.TOMLDecodeError:
        return 0.0
    rate = settings.get("network.rate", table.get("network", {}).get("rate", "10Mbit"))
    duration = settings.get("run.duration", table.get("run", {}).get("duration", "120s"))
    return _number(rate, {"k": 1e3, "M": 1e6, "G": 1e9}) * _number(duration, {"m": 1e-3, "min": 60, "h": 3600})


def _number(text: object, factors: Mapping[str, float]) -> float:
    found = re.match(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(min|h|[kMGm])?", str(text))
    if found is None:
        return 1.0
    try:
        return float(found[1]) * factors.get(found[2] or "", 1.0)
    except ValueError:
        return 1.0


def _narrow(until: str | float | None) -> float | None:
    """`±10 %` as a number."""
    if until is None:
        return None
    if isinstance(until, str):
        found = re.fullmatch(r"\s*(?:±|\+-|\+/-)?\s*([0-9.]+)\s*%\s*", until)
        if found is None:
            raise UsageError(f"until={until!r} is no width", 'write until="±10 %"', 2)
        until = float(found[1]) / 100
    if not 0 < until < 1:
        wrong = f"until={until!r} is a width of {until * 100:g} %, not one between 0 and 100 %"
        raise UsageError(wrong, 'until="±10 %" and until=0.1 are the same', 2)
    return until


def _points(grid: Grid) -> list[dict[str, object]]:
    """The settings of each cell. Two underscores stand for a dot, as in `groundswell.run`."""
    return [_dotted(cell) for cell in _cells(grid)]


def _dotted(settings: Mapping[str, object]) -> dict[str, object]:
    dotted: dict[str, object] = {}
    for key, value in settings.items():
        name = key.replace("__", ".")
        if name in dotted:
            raise UsageError(f"the grid has {name} twice", "write it once, with dots or with two underscores", 2)
        dotted[name] = value
    return dotted


def _cells(grid: Grid) -> list[dict[str, object]]:
    if isinstance(grid, Mapping):
        keys = list(grid)
        for key, values in grid.items():
            if isinstance(values, str):
                raise UsageError(f"grid[{key!r}] is no list of values", f"write [{values!r}]", 2)
        return [dict(zip(keys, values)) for values in itertools.product(*grid.values())]
    return [dict(cell) for cell in grid]


def _no_conflict(cells: Sequence[Cell], replications: int | None, until: str | float | None) -> None:
    """Raises an error if both the grid and an argument give the number of replications."""
    if replications is not None and until is not None:
        raise UsageError("`replications` and `until` both say how many", "give one of the two; `most` bounds `until`", 2)
    if any("run.replications" in cell.settings for cell in cells):
        for name, given in (("replications", replications), ("until", until)):
            if given is not None:
                raise UsageError(f"`{name}` and run.replications of the grid both say how many", "give one of the two", 2)


def _open(directory: Path, source: Source, cells: Sequence[Cell]) -> None:
    """Creates the directory of a sweep; raises an error if it belongs to another sweep."""
    directory.mkdir(parents=True, exist_ok=True)
    here = {"experiment": source.text, "cells": [dict(c.settings) for c in cells]}
    note = directory / "sweep.json"
    if note.is_file():
        there = json.loads(note.read_text(encoding="utf-8"))
        if there != json.loads(json.dumps(here, default=str)):
            raise UsageError(f"{directory} holds another sweep", "name another output", 2)
    partial = note.with_name(f".sweep.{uuid.uuid4().hex[:8]}")
    partial.write_text(json.dumps(here, default=str, indent=1), encoding="utf-8")
    partial.replace(note)


def _run_table(source: Source) -> Mapping[str, Any]:
    try:
        return tomli.loads(source.text).get("run", {})
    except tomli.TOMLDecodeError as error:
        raise GroundswellError(f"the experiment does not read: {error}", code=2) from error


def _first_seed(directory: Path) -> int:
    return int(directory.name.split("-")[1])


def _literal(given: object) -> Any:
    return given if given is None or isinstance(given, (bool, int, float, str)) else json.dumps(given, default=str)


def _escaped(name: str) -> str:
    # Vega-Lite interprets dots and brackets in field names as paths.
    return re.sub(r"([.\[\]])", r"\\\1", name)
