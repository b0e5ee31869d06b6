"""The workers of a sweep: a batch of runs, and how it is stopped."""

from __future__ import annotations

import concurrent.futures
import contextlib
import math
import multiprocessing
import os
import shutil
import signal
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path

from groundswell import _process
from groundswell._experiment import Source
from groundswell._packs import there, unpack
from groundswell.errors import ExperimentError, UsageError

LOOK = 0.1
"""Seconds between two looks at what is finished. Without a limit, a wait does not notice Ctrl-C where another thread of the
process receives the signal, as those of polars do."""

ASK = 0.5
"""Seconds between two looks of a worker whether the sweep was interrupted."""

LEAVE = 5.0
"""Seconds for workers of foreign executors to notice that."""

DAY = 86400.0
"""Seconds after which files that an earlier sweep left behind are removed."""

_ABANDONED: set[Path] = set()
"""The stop files of sweeps of this process that were abandoned."""


def abandon(pending: Iterable[concurrent.futures.Future[str]], stop: Path) -> None:
    """Cancels what has not begun, and asks workers to stop, wherever they are."""
    # Threads of this process need no file, which cannot be made on a full disk.
    _ABANDONED.add(stop)
    with contextlib.suppress(OSError):
        stop.touch()
    for future in pending:
        future.cancel()
    until = time.monotonic() + LEAVE
    while time.monotonic() < until and not all(future.done() for future in pending):
        time.sleep(LOOK)


def stop_file(directory: Path, token: str) -> Path:
    """The file that tells workers of a sweep to stop."""
    return directory / f".stop-{token}"


def sweep_up(directory: Path, token: str) -> None:
    """Removes what attempts left behind whose worker died: those of this sweep, and old ones. Others may be at work."""
    before = time.time() - DAY
    for left in [*directory.glob(".stop-*"), *directory.glob(".pack-*"), *directory.glob("cell-*/.seeds-*")]:
        with contextlib.suppress(OSError):
            # Another process may have removed it meanwhile.
            times = (path.stat().st_mtime for path in (left, left / "cells") if path.exists())
            written = max(times, default=math.inf)
            if left.name.startswith(".stop-"):
                if written < before:
                    left.unlink()
            elif f".{token}." in left.name or f"-{token}." in left.name or written < before:
                if left.is_dir():
                    shutil.rmtree(left, ignore_errors=True)
                else:
                    left.unlink()


@contextlib.contextmanager
def _tidy() -> Generator[Callable[[], bool], None, None]:
    """In a process of a pool, signals leave no step halfway. Gives whether one came, after which the batch is to stop.

    A terminal sends Ctrl-C to all processes of the group. A pool that lost a worker terminates the others."""
    came: set[int] = set()
    if multiprocessing.parent_process() is None or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda it, _: came.add(it)) for number in numbers]
    try:
        yield lambda: bool(came)
    finally:
        # A signal between the last look and the new handler would be lost, and the pool would wait for this process.
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        for number, handler in zip(numbers, before):
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if signal.SIGTERM in came:
            os.kill(os.getpid(), signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)


def work(text: str, path: str | None, cwd: str, changes: Sequence[str], place: str, token: str, later: bool = False) -> str:
    """The task of a worker: runs a batch. Returns its path. `later` says that it has other seeds than a batch before it."""
    with _tidy() as interrupted:
        return _run(text, path, cwd, changes, place, token, later, interrupted)


def _run(
    text: str,
    path: str | None,
    cwd: str,
    changes: Sequence[str],
    place: str,
    token: str,
    later: bool,
    interrupted: Callable[[], bool],
) -> str:
    """Runs a batch in a temporary directory and renames that when complete. Returns the final path.

    The program decides whether a batch that is there is of the same inputs and version. Raises `UsageError` if not."""
    final = Path(place)
    partial = final.with_name(f".{final.name}.{token}.{uuid.uuid4().hex[:8]}")
    stop = stop_file(final.parent.parent, token)
    looked, stopped = -math.inf, False

    def stops() -> bool:
        nonlocal looked, stopped
        if time.monotonic() >= looked + ASK:
            looked, stopped = time.monotonic(), stop in _ABANDONED or stop.exists()
        return stopped or interrupted()

    def run(output: Path) -> None:
        if path is not None and Source.of(path).text != text:
            raise UsageError(f"{path} has changed since the sweep began", "name another output for the new text", 2)
        arguments = ["run", path or "-", "--json", "--threads", "1", "--resume", "--output", str(output)]
        if later:
            # The first batch of a cell says whether its backgrounds have the energy that they were asked for.
            arguments.append("--energy-known")
        for change in changes:
            arguments += ["--set", change]
        _process.call(arguments, stdin=None if path else text, cwd=cwd, accept=_process.ANSWERS, stop=stops)

    final.parent.mkdir(parents=True, exist_ok=True)
    pack = unpack(final)
    if there(final):
        try:
            run(final)
        except ExperimentError:
            raise
        except UsageError as error:
            old = f"{final} and {pack}" if pack else final
            raise UsageError(error.message, f"name another output, or delete {old} to run it again", 2) from error
        return place
    try:
        run(partial)
        try:
            partial.rename(final)
        except OSError:
            # Another attempt finished first; its runs are the same if its inputs are.
            if not there(final):
                raise
            run(final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return place
