"""The package under each version of Python that it is for and that this machine has."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT, skip

PROGRAM = """
import concurrent.futures
import sys

import groundswell
from groundswell import build
from small import TEXT

def main():
    run = groundswell.run(TEXT, output="run")
    assert run.slowdown().height and run.requests.collect().height and str(run.verdict)
    # Tasks and cells go to other processes and back, which begin otherwise since 3.14.
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        swept = groundswell.sweep(TEXT, {"network.delay": ["2ms"]}, pool, output="swept")
    assert swept[0].done and swept.results.height
    try:
        groundswell.run(TEXT.replace("20kB", "20 parsecs"), output="wrong")
    except groundswell.ExperimentError as error:
        assert error.problems
    else:
        raise AssertionError("a wrong size is no error")
    print("well", *sys.version_info[:2])

if __name__ == "__main__":
    main()
"""


def found():
    """Interpreters by version: those on the path, and those of pyenv and uv."""
    home = pathlib.Path.home()
    managed = [*home.glob(".pyenv/versions/*/bin/python3"), *home.glob(".local/share/uv/python/*/bin/python3")]
    known = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    for minor in range(10, 15):
        on_path = shutil.which(f"python3.{minor}")
        for interpreter in filter(None, [on_path, *managed]):
            # A shim of pyenv is on the path for versions that are not active, and fails.
            ask = [interpreter, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
            said = subprocess.run(ask, capture_output=True, text=True).stdout.strip()
            if said == f"3.{minor}":
                known.setdefault(said, interpreter)
    return known


PYTHONS = found()


@pytest.mark.parametrize("version", PYTHONS)
def test_the_package_runs(version, here):
    made = here / "environment"
    subprocess.run([PYTHONS[version], "-m", "venv", made], check=True, capture_output=True)
    needs = subprocess.run([made / "bin/pip", "install", "--quiet", "polars>=1.20", "tomli>=2", "tomli-w>=1.0"], capture_output=True, text=True)
    if needs.returncode:
        skip(f"packages: {needs.stderr}")
    (here / "program.py").write_text(PROGRAM)
    own = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(ROOT / "python-tests")])}
    done = subprocess.run([made / "bin/python", "-W", "error::DeprecationWarning:groundswell", "program.py"], cwd=here, env=own, capture_output=True, text=True)
    assert done.stdout == f"well {version.replace('.', ' ')}\n", done.stderr
