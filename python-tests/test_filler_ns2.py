"""The filler study's reference numbers come from the script that is said to make them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts/filler-ns2"
# Every line, every trace, drops and none, and one where 1.3 bandwidth-delay products are few packets.
ROWS = [
    "selfsim1,none,3,20",
    "poisson,filler,10,3",
    "selfsim2,reversed,4,20",
    "poisson,buffer4,10,20",
    "selfsim2,buffer8,10,20",
    "selfsim1,buffer16,10,250",
    "selfsim2,buffer32,10,20",
]

# The continuous integration installs it: there nothing is skipped.
needs_ns2 = pytest.mark.skipif(
    shutil.which("ns") is None and "CI" not in os.environ,
    reason="the reference is made by ns-2, which is not installed (Debian and Ubuntu: apt-get install ns2)",
)


def run(*arguments):
    command = [SCRIPT, "--jobs", "1", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@needs_ns2
def test_ns2_gives_the_table_of_the_repository():
    done = run("--check", *ROWS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"{len(ROWS)} of {len(ROWS)} rows are the table's, digit for digit\n"


@needs_ns2
def test_what_it_writes_are_the_lines_of_the_table():
    done = run("poisson,none,10,20", "poisson,filler,15,20")
    assert done.returncode == 0, done.stderr
    table = (ROOT / "studies/filler/ns2.csv").read_text().splitlines()
    head, *rows = done.stdout.splitlines()
    assert head == table[0]
    assert len(rows) == 2 and set(rows) <= set(table)


def test_a_row_that_is_none_is_refused():
    done = run("--check", "poisson,filler,11,20")
    assert done.returncode == 2 and "poisson,filler,11,20" in done.stderr
