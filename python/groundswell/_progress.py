"""Progress in a notebook, or in a terminal."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

from groundswell._process import Progress

Report = Callable[[Progress], None]


def _shell() -> Any | None:
    """The shell of a notebook, or `None`."""
    if "IPython" not in sys.modules:
        return None
    from IPython.core.getipython import get_ipython

    shell: Any = cast("Any", get_ipython)()
    return shell if shell is not None and hasattr(shell, "kernel") else None


class Line:
    """Progress as a line, with the time that is left at the pace since the stage's first report: runs that were there
    before, and other stages, took none of that time."""

    def __init__(self) -> None:
        self._first: Progress | None = None

    def __call__(self, progress: Progress) -> str:
        if self._first is None or self._first.stage != progress.stage:
            self._first = progress
        left = ""
        done, seconds = progress.done - self._first.done, progress.seconds - self._first.seconds
        if done > 0 and progress.done < progress.runs and seconds > 2:
            left = f", about {seconds * (progress.runs - progress.done) / done:.0f} s left"
        return f"{progress.stage}: {int(progress.done)} of {progress.runs} runs{left}"


@contextmanager
def shown(wanted: bool | Report | None) -> Generator[Report | None, None, None]:
    """Shows progress during an operation: a bar in a notebook, a line in a terminal, nothing elsewhere."""
    if callable(wanted):
        yield wanted
    elif wanted is False:
        yield None
    elif _shell() is not None:
        line = Line()
        from IPython import display as shell

        show, HTML = cast("Any", shell).display, shell.HTML
        handle: Any = show(HTML(""), display_id=True)
        try:
            yield lambda p: handle.update(
                HTML(
                    f'<progress value="{p.done}" max="{max(p.runs, 1)}"></progress> '
                    f"<small>{html.escape(line(p))}</small>"
                )
            )
        finally:
            handle.update(HTML(""))
    elif wanted or sys.stderr.isatty():
        wrote, line = False, Line()

        def write(p: Progress) -> None:
            nonlocal wrote
            wrote = True
            print(f"\r\033[K{line(p)}", end="", file=sys.stderr, flush=True)

        try:
            yield write
        finally:
            if wrote:
                print("\r\033[K", end="", file=sys.stderr, flush=True)
    else:
        yield None
