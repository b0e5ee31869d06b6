"""The package under test is that of this checkout. SWELL names the program; the default is the debug build."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("SWELL", str(ROOT / "target/debug/swell"))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH")]))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty directory, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
