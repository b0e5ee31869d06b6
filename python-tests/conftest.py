"""The package under test is that of this checkout. SWELL names the program; the default is the debug build."""
import importlib
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("SWELL", str(ROOT / "target/debug/swell"))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH")]))


def skip(reason):
    """Skips a test that lacks a program, a package or a file. Under `CI` it fails: CI has to have them all."""
    if os.environ.get("CI"):
        pytest.fail(f"CI must have it: {reason}", pytrace=False)
    pytest.skip(reason)


def programs(*names):
    """Programs that a test needs. See `skip`."""
    own = {**os.environ, "CI": ""}
    out = subprocess.run([ROOT / "scripts/needs", *names], capture_output=True, text=True, env=own)
    if out.returncode:
        skip(out.stdout.replace("skipped: ", "").strip() or out.stderr)


def package(name):
    """A package that some tests need. See `skip`."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        return skip(str(missing))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty directory, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
