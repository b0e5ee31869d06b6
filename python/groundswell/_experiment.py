"""The forms in which an experiment can be given."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import tomli
import tomli_w

from groundswell._table import Table, plain
from groundswell.errors import UsageError

ExperimentLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | Table"
"""An experiment: the text of a file, a path, a dictionary or a builder."""


@dataclass(frozen=True)
class Source:
    """An experiment in a form that the program accepts."""

    text: str
    """The text of the file."""
    path: Path | None
    """The file, where it is one."""
    bundled: bool = False
    """Whether it is the quick start that the program carries."""

    @staticmethod
    def quick_start() -> Source:
        """The quick start that the program runs if it is given no experiment."""
        return Source('name = "quickstart"', None, bundled=True)

    @staticmethod
    def of(experiment: ExperimentLike) -> Source:
        """Converts `experiment`. A string with a line break is text, and so is one with `=` that neither names a file nor
        ends in `.toml`; any other string is a path.

        Raises `UsageError` if the file cannot be read or is not UTF-8."""
        if isinstance(experiment, Table):
            return Source(experiment.to_toml(), None)
        if isinstance(experiment, Mapping):
            return Source(tomli_w.dumps(plain(experiment)), None)
        if isinstance(experiment, str) and _is_text(experiment):
            return Source(experiment, None)
        if not os.fspath(experiment):
            raise UsageError("the experiment is an empty string", "give the text of a file, or a path", 2)
        path = Path(experiment).absolute()
        try:
            return Source(path.read_text(encoding="utf-8"), path)
        except OSError as error:
            raise UsageError(f"{experiment}: {error.strerror}", code=2) from error
        except UnicodeDecodeError as error:
            raise UsageError(f"{experiment}: byte {error.start} is not UTF-8", code=2) from error

    def name(self) -> str:
        """The name of the experiment. Errors in an unreadable file are left to the program."""
        try:
            return str(tomli.loads(self.text).get("name", "experiment"))
        except tomli.TOMLDecodeError:
            return "experiment"

    def arguments(self) -> list[str]:
        """The arguments that name the experiment."""
        if self.bundled:
            return []
        return [str(self.path) if self.path else "-"]

    def stdin(self) -> str | None:
        """The program's standard input."""
        return None if self.path or self.bundled else self.text

    def fingerprint(self, *parts: object) -> str:
        """Eight digits that identify this experiment and `parts`."""
        text = "\0".join([self.text, str(self.path or ""), *map(repr, parts)])
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def _is_text(given: str) -> bool:
    if "\n" in given:
        return True
    # Paths may contain `=`, as in `rate=10/mine.toml`.
    return "=" in given and not given.endswith(".toml") and not os.path.isfile(given)


def value(given: object) -> str:
    """A value in the form for `--set`: TOML on one line. Raises `UsageError` for None."""
    given = plain(given)
    if given is None:
        raise UsageError("None is no value of a key", "leave the key out, and it keeps the experiment's value", 2)
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, Mapping):
        items = cast("Mapping[str, object]", given).items()
        return "{" + ", ".join(f"{json.dumps(key)} = {value(item)}" for key, item in items) + "}"
    if isinstance(given, list):
        return "[" + ", ".join(map(value, cast("list[object]", given))) + "]"
    if isinstance(given, (int, float)):
        return repr(given)
    # Every JSON string is a TOML string.
    return json.dumps(str(given))


def assignments(overrides: Mapping[str, object]) -> list[str]:
    """Overrides in the form for `--set`. Two underscores stand for a dot: `network__rate="10Mbit"`."""
    return [f"{key.replace('__', '.')}={value(given)}" for key, given in overrides.items()]


def as_list(one_or_more: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Paths as strings."""
    if isinstance(one_or_more, (str, os.PathLike)):
        return [os.fspath(one_or_more)]
    return [os.fspath(one) for one in one_or_more]
