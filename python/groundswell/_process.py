"""Calls the `swell` program: its progress, its errors, Ctrl-C."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from groundswell.errors import BinaryNotFound, GroundswellError, Interrupted, UsageError, of_event

ANSWERS = (0, 3, 4, 5)
"""Exit codes that are verdicts, not failures."""

HOW = "`pip install groundswell` brings the program; or set the variable SWELL to its path"
"""Where the program comes from."""

PATIENCE = 20.0
"""Seconds that an interrupted command has to keep what is finished."""

STEP = 0.02
"""Seconds between two looks at a running command."""


def binary() -> str:
    """The path of the program: `SWELL`, else the one installed with this package, else the first on `PATH`."""
    given = os.environ.get("SWELL")
    if given:
        return given
    name = "swell.exe" if os.name == "nt" else "swell"
    schemes = {sysconfig.get_path("scripts"), str(Path(sys.executable).parent)}
    if hasattr(sysconfig, "get_preferred_scheme"):
        schemes.add(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    for directory in sorted(schemes):
        path = Path(directory) / name
        if path.is_file():
            return str(path)
    found = shutil.which(name)
    if found is None:
        raise BinaryNotFound("there is no `swell` program", HOW)
    return found


def main() -> None:
    """The command `groundswell`: the program itself."""
    path = binary()
    os.execv(path, [path, *sys.argv[1:]])


@dataclass(frozen=True)
class Progress:
    """The progress of a command."""

    stage: str
    """What it is doing: `measuring`, `running` or `study`."""
    done: float
    """Runs that are done, with the shares of those under way."""
    runs: int
    """Runs of this stage."""
    seconds: float
    """Seconds since it began."""


@dataclass
class Finished:
    """A finished command."""

    code: int
    output: str
    messages: list[str] = field(default_factory=list[str])
    """What it said on the way."""

    def json(self) -> Any:
        """Its output, parsed as JSON. Raises `GroundswellError` if it is none."""
        try:
            return json.loads(self.output)
        except ValueError as error:
            message = f"{binary()} printed no JSON: {self.output[:80]!r}"
            raise GroundswellError(message, f"is it `swell`? {HOW}") from error


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except ProcessLookupError:
        pass


def call(
    arguments: Sequence[str | os.PathLike[str]],
    *,
    progress: Callable[[Progress], None] | None = None,
    stdin: str | None = None,
    cwd: str | os.PathLike[str] | None = None,
    accept: Sequence[int] | None = (0,),
    environment: Mapping[str, str] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Finished:
    """Runs the program and waits for it. Raises an exception on failure. Ctrl-C first ends the program, which keeps
    completed runs; so does an exception of `progress`, which is raised here, and a true answer of `stop`, which raises
    `Interrupted`. `accept` lists the exit codes that are no failure; None is any of them without an error."""
    program = binary()
    try:
        process = subprocess.Popen(
            [program, "--events", *(os.fspath(a) for a in arguments)],
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            cwd=cwd,
            env=None if environment is None else {**os.environ, **environment},
            # In a terminal, Ctrl-C should reach only this process, which forwards it once.
            start_new_session=True,
        )
    except OSError as error:
        if cwd is not None and not os.path.isdir(cwd):
            raise GroundswellError(f"{os.fspath(cwd)} is no directory") from error
        raise BinaryNotFound(f"{program} cannot be started: {error.strerror}", HOW) from error
    ended = Finished(0, "")
    failures: list[Mapping[str, Any]] = []
    said: list[str] = []
    raised: list[BaseException] = []

    def hear(line: str) -> None:
        event = _event(line)
        if event is None:
            said.append(line.rstrip("\n"))
        elif event["event"] == "error":
            failures.append(event)
        elif event["event"] == "message":
            ended.messages.append(event["text"])
        elif event["event"] == "progress" and progress is not None and not raised:
            progress(Progress(event["stage"], event["done"], int(event["runs"]), event["seconds"]))

    def listen() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            try:
                hear(line)
            except BaseException as error:
                # Go on reading: a program that nobody listens to would wait for ever.
                raised.append(error)

    def feed() -> None:
        assert process.stdout is not None
        if process.stdin is not None:
            try:
                process.stdin.write(stdin or "")
                process.stdin.close()
            except BrokenPipeError:
                pass
        ended.output = process.stdout.read()

    helpers = [threading.Thread(target=listen, daemon=True), threading.Thread(target=feed, daemon=True)]
    for helper in helpers:
        helper.start()
    try:
        # Wait in short steps: the signal of Ctrl-C may wake another thread, but only the main thread handles it.
        while process.poll() is None:
            if raised:
                raise raised[0]
            if stop is not None and stop():
                raise Interrupted("stopped", code=130)
            time.sleep(STEP)
        ended.code = process.returncode
    except BaseException:
        _end(process)
        raise
    finally:
        for helper in helpers:
            helper.join(timeout=5)
        for pipe, helper in ((process.stderr, helpers[0]), (process.stdout, helpers[1])):
            if pipe is not None and not helper.is_alive():
                pipe.close()
    if raised:
        raise raised[0]
    if not failures if accept is None else ended.code in accept:
        ended.messages += said
        return ended
    if failures:
        raise of_event(failures[-1])
    text = "\n".join(said) or f"`swell {arguments[0]}` ended with code {ended.code}"
    raise (UsageError if ended.code == 2 else GroundswellError)(text, None, ended.code)


NUMBER = (int, float)
EVENTS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "error": {"code": int, "message": str},
    "message": {"text": str},
    "progress": {"stage": str, "done": NUMBER, "runs": NUMBER, "seconds": NUMBER},
    "warning": {"warning": dict},
}
"""The events of the program, and what each has."""


def _event(line: str) -> Mapping[str, Any] | None:
    """The event that a line is; None for a line that is none of the program's."""
    if not line.startswith("{"):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    has = EVENTS.get(str(event.get("event")))
    return event if has is not None and all(isinstance(event.get(key), kind) for key, kind in has.items()) else None


def _end(process: subprocess.Popen[str]) -> None:
    """Interrupts the program, which then keeps completed runs; kills it if that takes too long."""
    _signal(process, signal.SIGINT)
    try:
        process.wait(PATIENCE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()
