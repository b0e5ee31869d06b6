"""What a sweep cannot do, refused before its first run."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from groundswell import _process
from groundswell._experiment import Source, assignments
from groundswell.errors import ExperimentError, GroundswellError, Problem, UsageError

if TYPE_CHECKING:
    from groundswell._sweep import Cell


def no_conflict(cells: Sequence[Cell], replications: int | None, until: str | float | None) -> None:
    """Raises an error if both the grid and an argument give the number of replications."""
    if replications is not None and until is not None:
        raise UsageError("`replications` and `until` both say how many", "give one of the two; `most` bounds `until`", 2)
    if any("run.replications" in cell.settings for cell in cells):
        for name, given in (("replications", replications), ("until", until)):
            if given is not None:
                raise UsageError(f"`{name}` and run.replications of the grid both say how many", "give one of the two", 2)


def no_key(unknown: Mapping[str, object]) -> None:
    """Raises an error for arguments that `sweep` does not have, such as keys of the experiment, which `run` takes."""
    for name, given in unknown.items():
        near = difflib.get_close_matches(name, ARGUMENTS, 1, 0.75)
        key = name.replace("__", ".")
        hint = f"did you mean `{near[0]}`?" if near else f'keys are in the grid: {{"{key}": [{given!r}]}}'
        raise UsageError(f"`sweep` has no argument `{name}`", hint, 2)


ARGUMENTS = ("experiment", "grid", "executor", "output", "replications", "until", "most", "retries", "on_result")
"""The arguments of `sweep`."""


def check(source: Source, cells: Sequence[Cell]) -> None:
    """Raises the error of a wrong key, which every cell would fail with. Wrong values are errors of their cells."""
    alike: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        alike.setdefault(tuple(sorted(cell.settings)), []).append(cell)
    for group in alike.values():
        # Of one cell beside others nobody can tell a wrong key from a wrong value.
        alone = len(group) == 1 and len(alike) > 1
        error = None if alone else _wrong(source, group[0])
        keys = [] if error is None else _concerned(error, group[0].settings)
        # What is wrong with the rest is not for this machine to say.
        if error is None or not keys:
            continue
        # The last cell of a grid has other values of all keys that vary; a list of points may begin and end alike. What is
        # wrong with each value is no value.
        others = [group[-1], *filter(None, (_unlike(group, key) for key in keys))]
        if all(_said(_wrong(source, cell)) == _said(error) for cell in others):
            raise error


def _unlike(group: Sequence[Cell], key: str) -> Cell | None:
    """A cell with another value of this key than the first, if there is one."""
    return next((cell for cell in group if cell.settings[key] != group[0].settings[key]), None)


def _wrong(source: Source, cell: Cell) -> UsageError | None:
    """What is wrong with the experiment of a cell."""
    # So many shards leave none of the runs to this one: the program reads the experiment, and no more.
    arguments = ["run", *source.arguments(), "--made-up", "--shard", "9999/9999", "--json"]
    for change in assignments({**cell.settings, "run.replications": 1}):
        arguments += ["--set", change]
    with tempfile.TemporaryDirectory() as directory:
        try:
            _process.call([*arguments, "--output", str(Path(directory) / "run")], stdin=source.stdin(), accept=_process.ANSWERS)
        except UsageError as error:
            return error
        except GroundswellError:
            # The cell itself will say what stands against it.
            return None
    return None


FILES = ("deliveries", "file", "model", "page", "trace")
"""Keys of files."""


def _problems(error: ExperimentError) -> list[Problem]:
    """What is wrong with an experiment, without files: the workers may have some that this machine has not."""
    return [p for p in error.problems if p.key.split(".")[-1] not in FILES or p.message.startswith("unknown key")]


def _concerned(error: UsageError, settings: Mapping[str, object]) -> list[str]:
    """The keys of a cell that an error is about."""
    if not isinstance(error, ExperimentError):
        return [key for key in settings if f"`{key}`" in error.message]
    wrong = {problem.key.split(".")[-1] for problem in _problems(error)}
    return [key for key in settings if wrong.intersection(key.split("."))]


def _said(error: UsageError | None) -> object:
    if isinstance(error, ExperimentError):
        return [(p.key, p.message) for p in _problems(error)]
    return None if error is None else error.message
