"""Checks that the documented scripts reproduce the reference numbers of two studies."""

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import programs

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "scripts"))

from ns2_table import Table  # noqa: E402

@pytest.fixture
def ns2():
    """The reference is made by ns-2."""
    programs("ns")


CHECKED = {
    # Both profiles, every transport, both queues, drops, and added clients.
    "burstiness": [
        "era,renodelack,10",
        "modern,reno-red,20",
        "modern,udp,5",
        "era,vegas,1",
        "era,added-vegas-red2,5",
    ],
    # Every line, every trace, with and without drops, and a case where 1.3 bandwidth-delay products are few packets.
    "filler": [
        "selfsim1,none,3,20",
        "poisson,filler,10,3",
        "selfsim2,reversed,4,20",
        "poisson,buffer4,10,20",
        "selfsim2,buffer8,10,20",
        "selfsim1,buffer16,10,250",
        "selfsim2,buffer32,10,20",
    ],
}
WRITTEN = {
    "burstiness": ["modern,reno,5", "modern,added-reno-fifo1500,5"],
    "filler": ["poisson,none,10,20", "poisson,filler,15,20"],
}
NO_ROW = {"burstiness": "era,reno,2", "filler": "poisson,filler,11,20"}


def run(study, *arguments):
    command = [ROOT / f"scripts/{study}-ns2", "--jobs", "1", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.mark.usefixtures("ns2")
@pytest.mark.parametrize("study", CHECKED)
def test_ns2_gives_the_table_of_the_repository(study):
    rows = CHECKED[study]
    done = run(study, "--check", *rows)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"{len(rows)} of {len(rows)} rows are the table's, digit for digit\n"


@pytest.mark.usefixtures("ns2")
@pytest.mark.parametrize("study", WRITTEN)
def test_what_it_writes_are_the_lines_of_the_table(study):
    done = run(study, *WRITTEN[study])
    assert done.returncode == 0, done.stderr
    table = (ROOT / f"studies/{study}/ns2.csv").read_text().splitlines()
    head, *rows = done.stdout.splitlines()
    assert head == table[0]
    assert len(rows) == len(WRITTEN[study]) and set(rows) <= set(table)


@pytest.mark.usefixtures("ns2")
def test_a_table_of_other_seeds_is_another():
    done = run("burstiness", "--seeds", "2", "era,reno,1")
    assert done.returncode == 0, done.stderr
    _, row = done.stdout.splitlines()
    assert row.startswith("era,reno,1,2,") and row.endswith(",200")


@pytest.mark.parametrize("study", NO_ROW)
def test_a_row_that_is_none_is_refused(study):
    done = run(study, "--check", NO_ROW[study])
    assert done.returncode == 2 and NO_ROW[study] in done.stderr


def test_other_seeds_than_the_tables_cannot_be_checked():
    done = run("burstiness", "--check", "--seeds", "4", "era,reno,1")
    assert done.returncode == 2 and "--seeds" in done.stderr


def test_a_row_that_differs_is_told(tmp_path, capsys):
    path = tmp_path / "table.csv"
    path.write_text("line,clients,cov\nreno,5,0.1\nreno,10,0.2\n")
    table = Table(path, ["line", "clients"], ["line", "clients", "cov"])
    rows = [{"line": "reno", "clients": "5", "cov": "0.1"}, {"line": "reno", "clients": "10", "cov": "0.21"}]
    assert not table.differs(rows[:1])
    assert table.differs(rows)
    assert "reno,10: cov 0.21, not 0.2\n1 of 2 rows" in capsys.readouterr().out
