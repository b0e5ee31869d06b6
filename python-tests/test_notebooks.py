"""Runs every notebook from the first cell to the last."""
import pathlib

import nbclient
import nbformat
import pytest

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "python/notebooks"


@pytest.mark.parametrize("notebook", sorted(FOLDER.glob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_runs(notebook, tmp_path):
    (tmp_path / "experiments").symlink_to(FOLDER.parent.parent / "experiments")
    cells = nbformat.read(notebook, as_version=4)
    done = nbclient.NotebookClient(cells, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [o for c in done.cells if c.cell_type == "code" for o in c.outputs]
    shown = [text for o in outputs for kind, text in o.get("data", {}).items() if kind == "text/html"]
    # A chart is displayed as a chart.
    assert any("vega-lite" in text for text in shown)


def test_there_are_four_and_they_are_kept_without_outputs():
    notebooks = [nbformat.read(p, as_version=4) for p in FOLDER.glob("*.ipynb")]
    assert len(notebooks) == 4
    for cells in notebooks:
        assert all(not c.outputs and c.execution_count is None for c in cells.cells if c.cell_type == "code")
