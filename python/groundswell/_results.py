"""A run directory: tables, verdict, figures, the report."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from groundswell._frames import Frame, as_frame, scan
from groundswell._process import ANSWERS, call
from groundswell._show import Page, altair_chart, framed
from groundswell.errors import UsageError

if TYPE_CHECKING:
    import altair as alt

TABLES = ("requests", "bins", "scales", "flows", "links")
"""Tables that every run has."""

KEPT = {
    "coherence": "several links ([[links]])",
    "waits": "run.keep.waits = true",
    "delays": 'a foreground of datagrams, such as kind = "cbr"',
    "synchrony": "run.keep.synchrony = true",
    "parts": "a background of kind mix, or run.together = true",
    "part_bins": "a background of kind mix, or run.together = true",
    "measures": "a program that reports measures ([[foreground.reported]])",
    "estimates": "a foreground of kind probe",
    "waterfall": "run.keep.waterfall = true",
    "rtts": "run.keep.rtts = true",
    "gaps": "run.keep.gaps = true",
}
"""Tables that a run has where its experiment keeps them, and what makes it."""

CHARTS = ("cdf", "effects", "slowdown", "scales", "scales-up", "network", "time", "time-up", "waterfall")
"""The charts of a run."""


def said(doubt: Mapping[str, Any]) -> str:
    """A warning or a note as a line."""
    return f"{doubt['severity']}: {doubt['message']} [{doubt['code']}]"


class Verdict:
    """The verdict on runs. `str()` gives the answer in English; `raw` is everything, as `swell show --json` prints it."""

    raw: dict[str, Any]
    """Everything, as JSON has it. An end of an interval that is not known is `None`."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    @property
    def sentences(self) -> list[str]:
        """The answer for each application, without the lines on single backgrounds."""
        return [str(f["sentence"]) for f in self.raw["foregrounds"]]

    @property
    def lines(self) -> dict[str, list[str]]:
        """The evidence, a line for each background, by application; empty if the sentence says everything."""
        return {
            f["foreground"]: [str(line) for p in f["paragraphs"] for line in p["lines"]] for f in self.raw["foregrounds"]
        }

    @property
    def matters(self) -> dict[str, str]:
        """Whether background traffic matters: `yes`, `no` or `unclear`, by application."""
        return {f["foreground"]: f["matters"] for f in self.raw["foregrounds"]}

    @property
    def parametric_enough(self) -> dict[str, str | None]:
        """Whether CBR or Poisson packets of the same rate are enough, by application; `None` if nothing was compared."""
        return {f["foreground"]: f["parametric_enough"] for f in self.raw["foregrounds"]}

    @property
    def cheapest(self) -> dict[str, str | None]:
        """The cheapest sufficient background of a run with `suite`, by application; `None` if none is shown to be sufficient.

        `raw["foregrounds"][i]["suite"]` has every candidate with its evidence, and how many replications would decide."""
        suites = ((f["foreground"], f["suite"]) for f in self.raw["foregrounds"])
        return {name: suite["cheapest"] for name, suite in suites if suite is not None}

    @property
    def settled(self) -> bool:
        """Whether every background that was compared has an answer."""
        backgrounds = (b for f in self.raw["foregrounds"] for b in f["backgrounds"])
        return all(b["matters"] != "unclear" for b in backgrounds)

    @property
    def application_failed(self) -> bool:
        """Whether an application fails without any background traffic."""
        return any(f["application_failed"] for f in self.raw["foregrounds"])

    @property
    def doubts(self) -> list[str]:
        """What to doubt, warnings first, each with its code."""
        doubts = [*self.raw["doubts"], *(d for f in self.raw["foregrounds"] for d in f["doubts"])]
        doubts.sort(key=lambda d: d["severity"] != "warning")
        return [said(d) for d in doubts]

    @property
    def widest(self) -> float:
        """The relative half-width of the widest interval that affects the verdict; infinite if there is none."""
        # Null stands for infinity where there are intervals.
        widths = [f["sureness"]["widest"] for f in self.raw["foregrounds"] if _compared(f)]
        return max((math.inf if w is None else float(w) for w in widths), default=math.inf)

    @property
    def compared(self) -> bool:
        """Whether anything was compared: whether there are intervals, however wide."""
        return any(map(_compared, self.raw["foregrounds"]))

    @property
    def replications(self) -> int:
        """Number of replications."""
        return min((int(f["sureness"]["replications"]) for f in self.raw["foregrounds"]), default=0)

    def slowdown(self) -> pl.DataFrame:
        """Request times and slowdowns with their 95 % intervals: the numbers of the report, a row for each percentile.

        Unfinished requests are right-censored. An unknown upper end is infinite; a null value is unknown altogether."""
        rows: list[dict[str, Any]] = []
        for foreground in self.raw["foregrounds"]:
            for background in foreground["backgrounds"]:
                for quantile in background["quantiles"]:
                    row: dict[str, Any] = {
                        "foreground": foreground["foreground"],
                        "background": background["background"],
                        "percentile": quantile["p"],
                    }
                    for name in ("seconds", "slowdown"):
                        row |= _ends(name, quantile[name])
                    rows.append(row | {"matters": background["matters"], "replications": background["replications"]})
        ends = {f"{name}{end}": pl.Float64 for name in ("seconds", "slowdown") for end in ("", "_low", "_high")}
        schema = {"foreground": pl.String, "background": pl.String, "percentile": pl.Float64, **ends}
        return pl.DataFrame(rows, schema={**schema, "matters": pl.String, "replications": pl.Int64})

    def __str__(self) -> str:
        return "\n\n".join(
            "\n".join(line for p in f["paragraphs"] for line in (p["text"], *(f"  {own}" for own in p["lines"])))
            for f in self.raw["foregrounds"]
        )

    def __repr__(self) -> str:
        return f"<Verdict {self.matters}>"


def _compared(foreground: Mapping[str, Any]) -> bool:
    """Whether anything was compared for this application."""
    return any(b["judged"] for b in [*foreground["backgrounds"], *foreground["comparisons"]])


def _ends(name: str, estimate: Mapping[str, float | None] | None) -> dict[str, float | None]:
    if estimate is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    high = estimate["high"]
    return {
        name: estimate["value"],
        f"{name}_low": estimate["low"],
        f"{name}_high": math.inf if high is None else high,
    }


class Run:
    """A finished run directory, or several of the same experiment with other seeds, combined.

    Its tables are lazy polars frames; `.collect()` reads one, `.to_pandas()` converts it. A notebook shows the report."""

    directory: Path
    """The run directory; the first of several."""
    directories: tuple[Path, ...]
    """All of them."""

    def __init__(
        self, directory: str | os.PathLike[str], *more: str | os.PathLike[str], messages: Iterable[str] = ()
    ) -> None:
        # Absolute: the current directory may change.
        self.directories = tuple(Path(path).absolute() for path in (directory, *more))
        self.directory = self.directories[0]
        self.messages = list(messages)
        self._kept: dict[str, tuple[list[int], Any]] = {}
        for path in self.directories:
            if not (path / "manifest.json").is_file():
                raise UsageError(f"{path} is no run directory: there is no manifest.json in it", code=2)

    @staticmethod
    def known(verdict: Verdict | None, *directories: Path) -> Run:
        """Run directories with this verdict, until they change."""
        run = Run(*directories)
        if verdict is not None:
            run._keep("verdict", lambda: verdict)
        return run

    def _keep(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` returns, which is kept until the directories have other runs."""
        files = [path / "manifest.json" for path in self.directories]
        state = [file.stat().st_mtime_ns if file.is_file() else 0 for file in files]
        if name not in self._kept or self._kept[name][0] != state:
            self._kept[name] = (state, make())
        return self._kept[name][1]

    @property
    def manifest(self) -> dict[str, Any]:
        """What was run, with which versions and models, and the doubts."""
        path = self.directory / "manifest.json"
        return self._keep("manifest", lambda: json.loads(path.read_text(encoding="utf-8")))

    @property
    def verdict(self) -> Verdict:
        """What the runs say."""
        return self._keep("verdict", lambda: Verdict(call(["show", *self.directories, "--json"]).json()["verdict"]))

    def slowdown(self) -> pl.DataFrame:
        """Request times and slowdowns with their intervals: the numbers of the report."""
        return self.verdict.slowdown()

    def only(self) -> Path:
        """The directory of a run that has one. Raises `UsageError` if there are several."""
        if len(self.directories) > 1:
            raise UsageError(
                f"{self!r} consists of several directories; a comparison takes one for each run",
                "`run` with the same output and more replications makes one of them",
                2,
            )
        return self.directory

    def _paths(self, name: str) -> list[Path]:
        """The files of a table. Raises `UsageError` if one is missing."""
        paths = [path / f"{name}.parquet" for path in self.directories]
        missing = next((p for p in paths if not p.is_file()), None)
        if missing is not None:
            hint = f"an experiment has this table with {KEPT[name]}" if name in KEPT else None
            raise UsageError(f"{missing} is not there", hint, 2)
        return paths

    def table(self, name: str) -> Frame:
        """A table by its name. Rows of several directories are joined in the order of one.

        Raises `UsageError` if it is not there, or if the directories are not of one experiment with seeds of their own."""
        paths = self._paths(name)
        if len(paths) == 1:
            return scan(paths[0])
        # The program knows which runs belong together, and refuses others.
        _ = self.verdict
        frames: list[pl.LazyFrame] = []
        before = 0
        for path, directory in zip(paths, self.directories):
            # Replications are numbered consecutively across directories, as in the program.
            column = pl.col("replication")
            frames.append(pl.scan_parquet(path).with_columns((column + before).cast(pl.UInt32)))
            manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
            before += 1 + max(int(cell["replication"]) for cell in manifest["cells"])
        cells = self.manifest["cells"]
        joined = pl.concat(frames).sort(
            _rank("foreground", cells), _rank("background", cells), "replication", maintain_order=True
        )
        return as_frame(joined)

    def columns(self, name: str) -> pl.DataFrame:
        """The columns of a table with their meaning and units, from the table itself."""
        metadata = pl.read_parquet_metadata(self._paths(name)[0])
        return pl.DataFrame(json.loads(metadata["swell.columns"]))

    @property
    def requests(self) -> Frame:
        """A row per request of an application."""
        return self.table("requests")

    @property
    def bins(self) -> Frame:
        """The bottleneck over time."""
        return self.table("bins")

    @property
    def scales(self) -> Frame:
        """Log-scale diagrams of the arrivals at the bottleneck."""
        return self.table("scales")

    @property
    def flows(self) -> Frame:
        """A row per connection or datagram flow of the background."""
        return self.table("flows")

    @property
    def links(self) -> Frame:
        """Totals of both directions of the bottleneck."""
        return self.table("links")

    @property
    def waits(self) -> Frame:
        """How long packets waited in the queue."""
        return self.table("waits")

    @property
    def delays(self) -> Frame:
        """One-way delays of the foreground's datagrams."""
        return self.table("delays")

    @property
    def coherence(self) -> Frame:
        """What neighbouring links have in common, at each timescale."""
        return self.table("coherence")

    @property
    def synchrony(self) -> Frame:
        """Loss synchrony of connections."""
        return self.table("synchrony")

    @property
    def parts(self) -> Frame:
        """Totals of each foreground and background, if there are several at once."""
        return self.table("parts")

    @property
    def part_bins(self) -> Frame:
        """Each foreground and background over time, if there are several at once."""
        return self.table("part_bins")

    @property
    def measures(self) -> Frame:
        """Measures that programs reported themselves."""
        return self.table("measures")

    @property
    def estimates(self) -> Frame:
        """Available bandwidth at several timescales: a probe's estimate and the true value."""
        return self.table("estimates")

    @property
    def waterfall(self) -> Frame:
        """How the time of each request divides into causes."""
        return self.table("waterfall")

    @property
    def rtts(self) -> Frame:
        """Round trips of the packets of the foreground's connections, at their senders."""
        return self.table("rtts")

    @property
    def gaps(self) -> Frame:
        """How long senders of the foreground were idle between two windows."""
        return self.table("gaps")

    def chart(self, name: str | None = None, foreground: str | None = None) -> alt.TopLevelMixin:
        """A figure of the report as an editable Altair chart: `cdf`, `effects`, `slowdown`, `scales`, `scales-up`, `network`, `time`,
        `time-up` or, if recorded, `waterfall`. Default: `cdf`, or `effects` (all measures as ratios) for an application of
        which no request finished. Default `foreground`: the first application."""
        asked = [] if foreground is None else ["--foreground", foreground]
        picture = [] if name is None else ["--picture", name]
        arguments = ["show", *self.directories, "--vega", "-", *picture, *asked]
        return altair_chart(call(arguments).json())

    def report(self, output: str | os.PathLike[str] | None = None) -> Page:
        """The report. With `output` it is written there; otherwise it is that of the run directory."""
        if output is None and len(self.directories) == 1:
            path = self.directory / "report.html"
            if not path.is_file():
                call(["report", self.directory])
            return Page(path)
        path = Path(output).absolute() if output is not None else self.directory / "report-joined.html"
        call(["show", *self.directories, "--html", path, "--json"])
        return Page(path)

    def _repr_html_(self) -> str:
        return framed(self.report().html)

    def __repr__(self) -> str:
        names = ", ".join(str(path) for path in self.directories)
        return f"<Run {names}>"


def _rank(column: str, cells: Sequence[Mapping[str, Any]]) -> pl.Expr:
    """The place of a foreground or background in the order of the experiment."""
    names = list(dict.fromkeys(str(cell[column]) for cell in cells))
    return pl.col(column).replace_strict(names, list(range(len(names))))


class Comparison:
    """Run directories compared with the first of them. `str()` gives the answer; a notebook shows the page."""

    directories: tuple[Path, ...]
    """The run directories."""
    raw: dict[str, Any]
    """Everything, as `swell compare --json` prints it. An end of an interval that is not known is `None`."""

    def __init__(self, directories: Sequence[str | os.PathLike[str]], by: str | None = None) -> None:
        self.directories = tuple(Path(path).absolute() for path in directories)
        self._arguments: list[str | os.PathLike[str]] = ["compare", *self.directories, "--json"]
        self._arguments += [] if by is None else ["--by", by]
        self.raw = call(self._arguments, accept=ANSWERS).json()

    @property
    def differs(self) -> dict[str, str]:
        """Whether each run differs from the first: `yes`, `no` or `unclear`."""
        return {c["second"]: c["differs"] for c in self.raw["comparisons"]}

    @property
    def changes(self) -> pl.DataFrame:
        """The differences between the runs: keys of their experiments, versions, models."""
        rows = [{"run": c["second"], **change} for c in self.raw["comparisons"] for change in c["changes"]]
        return pl.DataFrame(rows, schema=dict.fromkeys(("run", "key", "first", "second"), pl.String))

    @property
    def differences(self) -> pl.DataFrame:
        """Every judged statistic, a row each: its values in both runs and their ratio with its 95 % interval.
        An unknown upper end is infinite. `differs` is about the row, `condition_differs` about all rows of its foreground
        beside its background: each is `yes`, `no` or `unclear`."""
        rows: list[dict[str, Any]] = []
        for comparison in self.raw["comparisons"]:
            for condition in comparison["conditions"]:
                for judged in condition["judged"]:
                    statistic = judged["statistic"]
                    row: dict[str, Any] = {
                        "run": comparison["second"],
                        "foreground": condition["foreground"],
                        "background": condition["background"],
                        "measure": judged["measure"],
                        "unit": judged["unit"],
                        "percentile": None if isinstance(statistic, str) else statistic["percentile"],
                        "first": judged["without"] and judged["without"]["value"],
                        "second": judged["with"] and judged["with"]["value"],
                    }
                    answers = {"differs": judged["differs"], "condition_differs": condition["differs"]}
                    rows.append(row | _ends("ratio", judged["ratio"]) | answers)
        texts = ("run", "foreground", "background", "measure", "unit")
        numbers = ("percentile", "first", "second", "ratio", "ratio_low", "ratio_high")
        schema = dict.fromkeys(texts, pl.String) | dict.fromkeys(numbers, pl.Float64)
        return pl.DataFrame(rows, schema={**schema, "differs": pl.String, "condition_differs": pl.String})

    @property
    def doubts(self) -> list[str]:
        """What to doubt, each with its code."""
        return [said(d) for c in self.raw["comparisons"] for d in c["doubts"]]

    def report(self, output: str | os.PathLike[str]) -> Page:
        """Writes the page with the figures of all runs, superimposed."""
        call([*self._arguments, "--html", output], accept=ANSWERS)
        return Page(Path(output).absolute())

    def _repr_html_(self) -> str:
        with tempfile.TemporaryDirectory() as place:
            return framed(self.report(Path(place) / "compared.html").html)

    def __str__(self) -> str:
        said = (c["said"] for c in self.raw["comparisons"])
        return "\n\n".join("\n".join((p["text"], *(f"  {line}" for line in p["lines"]))) for p in said)

    def __repr__(self) -> str:
        return f"<Comparison {self.differs}>"


class Model:
    """A traffic model: a file, or the name of a bundled one. Raises `UsageError` if it is neither."""

    source: str
    """The file or the name."""
    warnings: list[str]
    """What `learn` warned of, each with its code; empty for a model that was not just learnt, which has `doubts`."""
    private: dict[str, Any] | None
    """What `private` costs, as `swell learn --json` prints it: figures of the trace itself, for its holder."""

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        warnings: Iterable[str] = (),
        private: dict[str, Any] | None = None,
    ) -> None:
        self.source = os.fspath(source)
        self.warnings, self.private = list(warnings), private
        if Path(self.source).is_file():
            self.source = str(Path(self.source).absolute())
        else:
            # The program knows the names of bundled models, and refuses others.
            _ = self.summary

    @cached_property
    def summary(self) -> dict[str, Any]:
        """A summary in numbers."""
        return call(["show", self.source, "--json"]).json()

    @property
    def doubts(self) -> list[str]:
        """What to doubt, each with its code."""
        return [said(d) for d in self.summary.get("warnings", [])]

    def chart(self, name: str = "sizes") -> alt.TopLevelMixin:
        """A picture of the model as an editable Altair chart: `sizes`, `rtts`, `load` or `scales`."""
        return altair_chart(call(["show", self.source, "--vega", "-", "--picture", name]).json())

    def report(self, output: str | os.PathLike[str]) -> Page:
        """A page with all its pictures."""
        call(["show", self.source, "--html", output, "--json"])
        return Page(Path(output).absolute())

    def __repr__(self) -> str:
        return f"<Model {self.source}>"


class Study:
    """A finished study: a ledger of claims, and figures."""

    directory: Path
    """Its directory."""
    raw: dict[str, Any]
    """Everything, as `swell study --json` prints it."""

    def __init__(self, directory: Path, raw: dict[str, Any]) -> None:
        self.directory, self.raw = directory.absolute(), raw

    @property
    def ledger(self) -> pl.DataFrame:
        """The claims: a row for each claim under each set of circumstances."""
        rows = [
            {
                "ledger": ledger["title"],
                "id": entry["id"],
                "claim": entry["claim"],
                "circumstances": column,
                "verdict": finding["verdict"],
                "value": finding["value"],
            }
            for ledger in self.raw["study"]["ledgers"]
            for entry in ledger["entries"]
            for column, finding in zip(ledger["columns"], entry["findings"])
        ]
        columns = ("ledger", "id", "claim", "circumstances", "verdict", "value")
        return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))

    @property
    def figures(self) -> dict[str, str]:
        """Names and titles of the figures."""
        pictures = (p for s in self.raw["study"]["sections"] for p in s["pictures"])
        return {p["name"]: p["title"] for p in pictures}

    def chart(self, name: str) -> alt.TopLevelMixin:
        """A figure as an editable Altair chart."""
        path = self.directory / "pictures" / f"{name}.vl.json"
        if not path.is_file():
            raise UsageError(f"no figure is called {name}", f"there are: {', '.join(self.figures)}", 2)
        return altair_chart(json.loads(path.read_text(encoding="utf-8")))

    def report(self) -> Page:
        """The page about the study."""
        return Page(self.directory / "report.html")

    def _repr_html_(self) -> str:
        return framed(self.report().html)

    def __repr__(self) -> str:
        return f"<Study {self.directory}>"


ProgressLike = bool | Callable[..., None] | None
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
