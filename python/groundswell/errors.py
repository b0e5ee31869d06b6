"""The exceptions of this package."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groundswell._sweep import Sweep

__all__ = [
    "BinaryNotFound",
    "ExperimentError",
    "GroundswellError",
    "Interrupted",
    "Problem",
    "SweepError",
    "UsageError",
]


class GroundswellError(Exception):
    """A command failed."""

    message: str
    """What went wrong."""
    hint: str | None
    """What would help."""
    code: int
    """The exit code of the command."""

    def __init__(self, message: str, hint: str | None = None, code: int = 1) -> None:
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")
        self.message, self.hint, self.code = message, hint, code

    def __reduce__(self) -> tuple[Any, ...]:
        # Needed to unpickle the exception from another process.
        return (type(self), (self.message, self.hint, self.code))


class UsageError(GroundswellError):
    """The request is invalid, or a file cannot be read."""


class Interrupted(GroundswellError):
    """The command was interrupted; completed runs are kept."""


class BinaryNotFound(GroundswellError):
    """The program `swell` was not found."""


@dataclass(frozen=True)
class Problem:
    """A single problem in an experiment."""

    line: int
    """Line, from 1."""
    column: int
    """Column, from 1."""
    width: int
    """Characters in question."""
    key: str
    """The key, dotted; empty for a syntax error."""
    message: str
    """What is wrong."""
    hint: str | None
    """What to write instead."""
    source: str
    """The line of the file."""


class ExperimentError(UsageError):
    """An experiment is wrong; `problems` says where."""

    file: str
    """The file, or `standard input` for what was given as a value."""
    problems: tuple[Problem, ...]
    """Everything that is wrong, in the order of the lines."""

    def __init__(self, message: str, file: str, problems: Sequence[Problem], code: int = 2) -> None:
        super().__init__(message, None, code)
        self.file, self.problems = file, tuple(problems)
        self.hint = next((p.hint for p in problems if p.hint), None)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.message, self.file, self.problems, self.code))


class SweepError(GroundswellError):
    """Cells of a sweep failed permanently. The others are in `sweep` and in its directory; the same call continues with
    all, and with a grid without those that cannot work."""

    errors: Mapping[int, BaseException]
    """What happened, by the number of the cell."""
    sweep: Sweep | None
    """The sweep with all its cells. Those that failed have the `error`, and may lack a verdict."""

    def __init__(self, message: str, errors: Mapping[int, BaseException], sweep: Sweep | None = None) -> None:
        super().__init__(message)
        self.errors, self.sweep = dict(errors), sweep

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.message, self.errors, self.sweep))


ARGUMENTS = {"-o DIR": "another `output`", "--fresh": "`fresh=True`", "--resume": "`resume=True`", "--by": "`by`"}
"""Options that hints of the program name, and the arguments of this package that stand for them."""


def _in_python(hint: str | None) -> str | None:
    """A hint of the program, with arguments of this package instead of options."""
    if hint is None:
        return None
    options = "|".join(map(re.escape, ARGUMENTS))
    # A command line, which is between backquotes, remains one.
    parts = re.split("(`swell [^`]*`)", hint)
    parts[::2] = [re.sub(rf"(?<![\w-])({options})(?![\w-])", lambda found: ARGUMENTS[found[1]], part) for part in parts[::2]]
    return "".join(parts)


def of_event(event: Mapping[str, Any]) -> GroundswellError:
    """The exception for the event that reports a command's failure."""
    message, hint, code = event["message"], _in_python(event.get("hint")), int(event["code"])
    problems = event.get("problems")
    if problems:
        return ExperimentError(message, event.get("file") or "", [Problem(**p) for p in problems], code)
    if code == 130:
        return Interrupted(message, hint, code)
    if code == 2:
        return UsageError(message, hint, code)
    return GroundswellError(message, hint, code)
