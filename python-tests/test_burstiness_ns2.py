"""The burstiness study's reference numbers come from the script that is said to make them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts/burstiness-ns2"

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
    # Both profiles, every transport, both queues, drops, and clients beside others.
    rows = ["era,renodelack,10", "modern,reno-red,20", "modern,udp,5", "era,vegas,1", "era,added-vegas-red2,5"]
    done = run("--check", *rows)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"{len(rows)} of {len(rows)} rows are the table's, digit for digit\n"


@needs_ns2
def test_what_it_writes_are_the_lines_of_the_table():
    done = run("modern,reno,5", "modern,added-reno-fifo1500,5")
    assert done.returncode == 0, done.stderr
    table = (ROOT / "studies/burstiness/ns2.csv").read_text().splitlines()
    head, *rows = done.stdout.splitlines()
    assert head == table[0]
    assert len(rows) == 2 and set(rows) <= set(table)


@needs_ns2
def test_a_table_of_other_seeds_is_another():
    done = run("--seeds", "2", "era,reno,1")
    assert done.returncode == 0, done.stderr
    _, row = done.stdout.splitlines()
    assert row.startswith("era,reno,1,2,") and row.endswith(",200")


def test_what_cannot_be_compared_is_refused():
    for wish in (["era,reno,2"], ["--seeds", "4", "era,reno,1"]):
        done = run("--check", *wish)
        assert done.returncode == 2 and wish[0] in done.stderr
