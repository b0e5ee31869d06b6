"""Pages and charts."""

from __future__ import annotations

import html
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class Page:
    """A self-contained page, which a notebook shows unchanged."""

    path: Path
    """Where it is."""

    @property
    def html(self) -> str:
        """The page itself."""
        return self.path.read_text(encoding="utf-8")

    def open(self) -> None:
        """Opens the page in a browser."""
        webbrowser.open(self.path.resolve().as_uri())

    def _repr_html_(self) -> str:
        # In a frame of its own, so that its style and script cannot affect the notebook.
        return framed(self.html)


def framed(page: str, height: int = 720) -> str:
    """A page embedded in another."""
    return (
        f'<iframe srcdoc="{html.escape(page, quote=True)}" sandbox="allow-scripts allow-downloads" '
        f'style="width:100%;height:{height}px;border:1px solid #ccc"></iframe>'
    )


def altair_chart(specification: dict[str, Any]) -> alt.TopLevelMixin:
    """A Vega-Lite specification as an Altair chart."""
    import altair as alt

    return alt.Chart.from_dict(specification)
