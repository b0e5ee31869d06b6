"""The grid of a sweep: its cells, and what they cost."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

import tomli

from groundswell._experiment import Source, assignments
from groundswell._table import plain
from groundswell.errors import UsageError

Grid = Mapping[str, Iterable[object]] | Iterable[Mapping[str, object]]
"""Values by key, every one with every other; or the cells themselves."""


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


def narrow(until: str | float | None) -> float | None:
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


def points(grid: Grid) -> list[dict[str, object]]:
    """The settings of each cell. Two underscores stand for a dot, as in `groundswell.run`."""
    return [_dotted(cell) for cell in _cells(grid)]


def different(cells: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """The cells without those whose settings an earlier one has."""
    kept: dict[tuple[str, ...], Mapping[str, object]] = {}
    for cell in cells:
        kept.setdefault(tuple(sorted(assignments(cell))), cell)
    return list(kept.values())


def _dotted(settings: Mapping[str, object]) -> dict[str, object]:
    dotted: dict[str, object] = {}
    for key, value in settings.items():
        name = key.replace("__", ".")
        if name in dotted:
            raise UsageError(f"the grid has {name} twice", "write it once, with dots or with two underscores", 2)
        if value is None:
            raise UsageError(f"the grid sets {name} to None", "a cell that leaves the key out has the experiment's value", 2)
        dotted[name] = plain(value)
    return dotted


def _cells(grid: Grid) -> list[dict[str, object]]:
    if isinstance(grid, Mapping):
        values = cast("Mapping[str, Iterable[object]]", grid)
        for key, given in values.items():
            if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UsageError(f"grid[{key!r}] is no list of values", f"write [{given!r}]", 2)
        return [dict(zip(values, cell)) for cell in itertools.product(*values.values())]
    return [dict(cell) for cell in grid]
