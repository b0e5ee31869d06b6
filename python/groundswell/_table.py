"""The base class of all tables of an experiment file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

import tomli_w


def plain(value: object) -> Any:
    """Converts `value` for TOML: builders become dictionaries without the omitted keys."""
    if isinstance(value, Table):
        return value.to_dict()
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {key: plain(item) for key, item in items if item is not None}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in cast("list[object]", value)]
    # Numbers and arrays of NumPy have this method, and TOML knows neither. A `float64` is a `float` as well, but its
    # `repr` is not that of one.
    convert = getattr(value, "tolist", None)
    return convert() if callable(convert) else value


class Table:
    """A table of an experiment file."""

    def to_dict(self) -> dict[str, Any]:
        """The table as a dictionary, without keys that are left to the program's defaults."""
        fields = dataclasses.fields(cast("Any", self))
        named = ((field.name.rstrip("_"), getattr(self, field.name)) for field in fields)
        return {name: plain(value) for name, value in named if value is not None}

    def to_toml(self) -> str:
        """The table as the text of an experiment file."""
        return tomli_w.dumps(self.to_dict())
