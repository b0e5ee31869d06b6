"""Does background traffic matter to my application?

```python
import groundswell

run = groundswell.run(quick=True, run__replications=2, run__duration="60s")
print(run.verdict)
print(run.slowdown().head(4))
print(run.requests.select("background", "outcome").unique().collect())
```

`run`, `compare`, `under`, `learn`, `study` and `models` are commands of the program `swell`, which this package includes. The
package calls it and computes nothing itself. `sweep` runs an experiment over a grid on any `concurrent.futures` executor.
`groundswell.build` has typed builders for experiments.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import tomli

from groundswell import build
from groundswell._commands import compare, learn, models, run, study, under
from groundswell._frames import Frame
from groundswell._process import Progress, binary
from groundswell._results import CHARTS, TABLES, Comparison, Model, Run, Study, Verdict
from groundswell._show import Page
from groundswell._sweep import Cell, Sweep, sweep
from groundswell.errors import (
    BinaryNotFound,
    ExperimentError,
    GroundswellError,
    Interrupted,
    Problem,
    SweepError,
    UsageError,
)



def _version() -> str:
    """The version of this package. That of a checkout is in its `Cargo.toml`, whatever is installed beside it."""
    cargo = Path(__file__).resolve().parents[2] / "Cargo.toml"
    try:
        return str(tomli.loads(cargo.read_text(encoding="utf-8"))["workspace"]["package"]["version"])
    except (OSError, ValueError, KeyError):
        pass
    try:
        return version("groundswell")
    except PackageNotFoundError:
        return "0"


__version__ = _version()

__all__ = [
    "CHARTS",
    "TABLES",
    "BinaryNotFound",
    "Cell",
    "Comparison",
    "ExperimentError",
    "Frame",
    "GroundswellError",
    "Interrupted",
    "Model",
    "Page",
    "Problem",
    "Progress",
    "Run",
    "Study",
    "Sweep",
    "SweepError",
    "UsageError",
    "Verdict",
    "__version__",
    "binary",
    "build",
    "compare",
    "learn",
    "models",
    "run",
    "study",
    "sweep",
    "under",
]
