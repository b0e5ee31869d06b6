"""Shards of an experiment, as other schedulers than SLURM start them, give the tables of one machine."""

import os
import pathlib
import subprocess

import pytest
import yaml

from conftest import programs

ROOT = pathlib.Path(__file__).parent.parent
EXPERIMENT = """
name = "array"
network = { rate = "10Mbit", rtt = "20ms" }
foreground = [{ name = "page", kind = "web", object = "20kB" }]
background = [{ name = "none", kind = "none" }, { name = "cbr", kind = "cbr", rate = "5Mbit" }]
run = { replications = 3, warmup = "1s", duration = "4s" }
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "array.toml").write_text(EXPERIMENT)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/swell").symlink_to(pathlib.Path(os.environ["SWELL"]).resolve())
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path


def joined(place):
    """Joins the shards, and compares the tables with those of one process."""
    assert any((place / "array").iterdir())
    for output in ("array", "alone"):
        done = subprocess.run(["swell", "run", "array.toml", "-o", output], cwd=place, capture_output=True, text=True)
        assert done.returncode in (0, 3), done.stderr
        # That line is there if some runs were left to do: a shard was missing.
        assert "runs are there already" not in done.stderr, done.stderr
    for table in ("requests", "bins"):
        assert (place / f"array/{table}.parquet").read_bytes() == (place / f"alone/{table}.parquet").read_bytes()


def test_the_indexed_job_of_kubernetes_does_every_shard(place):
    claim, job = yaml.safe_load_all((ROOT / "deploy/kubernetes-shards.yaml").read_text())
    spec = job["spec"]
    [shard] = spec["template"]["spec"]["containers"]
    environment = {e["name"]: e["value"] for e in shard["env"]}
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"] == int(environment["SHARDS"])
    mounts = {m["name"]: m["mountPath"] for m in shard["volumeMounts"]}
    volumes = {v["name"]: v for v in spec["template"]["spec"]["volumes"]}
    assert mounts.keys() == volumes.keys() and mounts["runs"] == shard["workingDir"]
    assert volumes["runs"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert environment["EXPERIMENT"] == f"{mounts['experiment']}/array.toml"
    environment["EXPERIMENT"] = str(place / "array.toml")
    pods = [
        subprocess.Popen(shard["command"] + shard["args"], cwd=place, env={**os.environ, **environment, "JOB_COMPLETION_INDEX": str(i)})
        for i in range(spec["completions"])
    ]
    assert all(pod.wait(120) == 0 for pod in pods)
    joined(place)


def test_the_recipe_with_gnu_parallel_does_every_shard(place):
    programs("parallel")
    page = (ROOT / "docs/how-to/sweep.md").read_text()
    [recipe] = [line for line in page.split("`") if line.startswith("seq 4 | parallel")]
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", recipe], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    joined(place)
