"""External readers open our tables with equal contents: pandas (pyarrow), Polars and DuckDB.

The run directory comes from the program itself (`swell run --made-up`): SWELL names the binary,
default target/release/swell or target/debug/swell.
"""

import json
import math
import os
import pathlib
import re
import subprocess

import duckdb
import pandas
import polars
import pyarrow.parquet
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES = ["requests", "bins", "scales", "flows", "links"]

EXPERIMENT = """
name = "tables"
[network]
rate = "10Mbit"
[[foreground]]
name = "web"
kind = "web"
object = "100kB"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "poisson"
kind = "poisson"
rate = "5Mbit"
[run]
replications = 2
warmup = "1s"
duration = "11s"
"""


def binary():
    named = os.environ.get("SWELL")
    found = [named] if named else [ROOT / "target" / p / "swell" for p in ("release", "debug")]
    for path in map(pathlib.Path, found):
        if path.exists():
            return path
    pytest.fail("no swell binary: build it, or name it in SWELL")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    where = tmp_path_factory.mktemp("tables")
    (where / "tables.toml").write_text(EXPERIMENT)
    command = [binary(), "run", "tables.toml", "-o", "run", "--made-up"]
    subprocess.run(command, cwd=where, check=True, capture_output=True)
    return where / "run"


@pytest.mark.parametrize("table", TABLES)
def test_three_readers_agree(run, table):
    path = run / f"{table}.parquet"
    by_pandas = pandas.read_parquet(path)
    by_polars = polars.read_parquet(path)
    by_duckdb = duckdb.sql(f"SELECT * FROM '{path}'").fetchall()
    assert len(by_pandas) > 0
    assert list(by_pandas.columns) == by_polars.columns
    rows = by_polars.rows()
    assert rows == by_duckdb
    # pandas represents a null in a column of doubles as NaN.
    for theirs, ours in zip(by_pandas.itertuples(index=False), rows):
        for a, b in zip(theirs, ours):
            assert a == b or (b is None and math.isnan(a))


@pytest.mark.parametrize("table", TABLES)
def test_types_and_descriptions(run, table):
    file = pyarrow.parquet.ParquetFile(run / f"{table}.parquet")
    described = json.loads(file.metadata.metadata[b"swell.columns"])
    assert [c["name"] for c in described] == file.schema_arrow.names
    assert all(c["description"] for c in described)
    types = dict(zip(file.schema_arrow.names, map(str, file.schema_arrow.types)))
    for name, kind in types.items():
        if name.endswith("_s"):
            assert kind == "double"
        if name.endswith(("_bytes", "_packets")):
            assert kind in ("uint64", "uint32", "double")
    assert types["foreground"] == "string"
    assert types["replication"] == "uint32"


def test_what_did_not_happen_is_null(run):
    [(null, total)] = duckdb.sql(
        f"SELECT count(*) FILTER (WHERE end_s IS NULL), count(*) FROM '{run}/flows.parquet'"
    ).fetchall()
    assert 0 < null < total


def test_manifest_lists_the_runs_of_the_tables(run):
    manifest = json.loads((run / "manifest.json").read_text())
    listed = {(c["foreground"], c["background"], c["replication"]) for c in manifest["cells"]}
    found = duckdb.sql(
        f"SELECT DISTINCT foreground, background, replication FROM '{run}/requests.parquet'"
    ).fetchall()
    assert set(found) == listed


def code_blocks(page, language):
    """The code blocks of one language in a page of docs/."""
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_examples_of_the_page_run_and_lose_no_request(run, monkeypatch):
    (python,) = code_blocks("results.md", "python")
    (sql,) = code_blocks("results.md", "sql")
    names = {}
    exec(python.replace("web/", f"{run}/"), names)  # noqa: S102: our own page
    requests = names["requests"]
    assert requests.took_s.notna().all() and (requests.took_s >= 0).all()
    counted = duckdb.sql(sql.replace("web/", f"{run}/")).df()
    assert counted["count_star()"].sum() == len(requests)
    assert set(counted.outcome) <= {"done", "unfinished", "failed"}
