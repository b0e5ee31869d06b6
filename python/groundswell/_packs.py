"""Finished batches of a sweep: many of them in one file, so that the number of files stays small.

A pack is a zip archive of run directories. It is complete when it has its name, and never changes. A batch that is
wanted again is put back where it was. A report is left out: the program makes it anew."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

PACK = 100
"""Batches in a pack. At most twice as many finished ones stand by themselves."""

LEFT_OUT = (".lock", "report.html")
"""Files that can be made anew."""

_CONTENTS: dict[Path, frozenset[str]] = {}
"""The batches of packs that were opened."""


def there(place: Path) -> bool:
    """Whether a finished batch stands by itself."""
    return (place / "manifest.json").is_file()


def pack(batches: Sequence[Path], token: str) -> None:
    """Moves batches of one sweep into a pack. Another sweep may be removing them, too."""
    batches = [place for place in batches if there(place)]
    if not batches:
        return
    directory = batches[0].parent.parent
    unique = f"{token}.{uuid.uuid4().hex[:8]}"
    # What is packed already was only put back to be read.
    new = [place for place in batches if not _same(place)]
    if new:
        partial = directory / f".pack-{unique}"
        try:
            with zipfile.ZipFile(partial, "w") as archive:
                for place in new:
                    for file in _files(place):
                        archive.write(file, file.relative_to(directory).as_posix())
            with partial.open("rb") as written:
                os.fsync(written.fileno())
            partial.rename(directory / f"pack-{unique}.zip")
        finally:
            partial.unlink(missing_ok=True)
    for place in batches:
        # Under another name first: a batch of which a part is removed must not look finished.
        partial = place.with_name(f".{place.name}.{unique}")
        with contextlib.suppress(OSError):
            place.rename(partial)
            shutil.rmtree(partial, ignore_errors=True)
            place.parent.rmdir()


def unpack(place: Path) -> Path | None:
    """Puts a batch back, if it is packed and not there. Returns the pack that it is in."""
    found = find(place)
    if found is None or there(place):
        return found
    partial = place.with_name(f".{place.name}.unpacked.{uuid.uuid4().hex[:8]}")
    own = f"{_name(place)}/"
    try:
        with zipfile.ZipFile(found) as archive:
            for name in archive.namelist():
                if name.startswith(own):
                    file = partial / name.removeprefix(own)
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(archive.read(name))
        # Another process may have put it back first.
        with contextlib.suppress(OSError):
            partial.rename(place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return found


def find(place: Path) -> Path | None:
    """The newest pack with this batch."""
    name = _name(place)
    return next((pack for pack in _packs(place.parent.parent) if name in _contents(pack)), None)


def _packs(directory: Path) -> list[Path]:
    """The packs of a sweep, the newest first."""
    try:
        with os.scandir(directory) as entries:
            packs = [e for e in entries if e.name.startswith("pack-") and e.name.endswith(".zip")]
            packs.sort(key=lambda e: (e.stat().st_mtime_ns, e.name), reverse=True)
    except FileNotFoundError:
        return []
    return [Path(e.path) for e in packs]


def _contents(pack: Path) -> frozenset[str]:
    if pack not in _CONTENTS:
        with zipfile.ZipFile(pack) as archive:
            _CONTENTS[pack] = frozenset("/".join(name.split("/")[:2]) for name in archive.namelist())
    return _CONTENTS[pack]


def _name(place: Path) -> str:
    return f"{place.parent.name}/{place.name}"


def _same(place: Path) -> bool:
    """Whether a batch is in a pack as it is here. Its manifest says when it ran."""
    found = find(place)
    if found is None:
        return False
    with zipfile.ZipFile(found) as archive:
        return archive.read(f"{_name(place)}/manifest.json") == (place / "manifest.json").read_bytes()


def _files(place: Path) -> Iterator[Path]:
    for root, _, names in os.walk(place):
        for name in sorted(names):
            file = Path(root) / name
            if file.parent != place or name not in LEFT_OUT:
                yield file
