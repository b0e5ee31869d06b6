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


def line(progress: Progress) -> str:
    """Progress as a line."""
    left = ""
    if 0 < progress.done < progress.runs and progress.seconds > 2:
        seconds = progress.seconds * (progress.runs - progress.done) / progress.done
        left = f", about {seconds:.0f} s left"
    return f"{progress.stage}: {int(progress.done)} of {progress.runs} runs{left}"


@contextmanager
def shown(wanted: bool | Report | None) -> Generator[Report | None, None, None]:
    """Shows progress during an operation: a bar in a notebook, a line in a terminal, nothing elsewhere."""
    if callable(wanted):
        yield wanted
    elif wanted is False:
        yield None
    elif _shell() is not None:
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
        wrote = False

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
