"""A job array under real SLURM: a controller and one node, on the loopback interface, in a folder of their own."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest

from conftest import package, skip

SWELL = pathlib.Path(os.environ["SWELL"]).resolve()
EXPERIMENT = """
name = "array"
[network]
rate = "10Mbit"
[[foreground]]
name = "page"
kind = "web"
object = "50kB"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "poisson"
kind = "poisson"
rate = "4Mbit"
[run]
warmup = "1s"
duration = "4s"
replications = 4
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.2)


def steps(place):
    """Processes of job steps, which outlive the node's daemon; identified by their open log files."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text().strip() == "slurmstepd" and any(
                os.readlink(fd).startswith(str(place)) for fd in (process / "fd").iterdir()
            ):
                found.append(int(process.name))
        except OSError:
            pass  # it has ended
    return found


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A cluster of one node. Its commands read SLURM_CONF."""
    missing = [c for c in ("slurmctld", "slurmd", "sbatch", "squeue", "munged") if shutil.which(c, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing or os.geteuid() != 0:
        skip(f"SLURM ({missing} missing: apt-get install slurm-wlm munge), as root")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin")
    place = tmp_path / "slurm"
    for folder in ("state", "spool", "munge"):
        (place / folder).mkdir(parents=True, mode=0o700)
    secret = place / "munge/key"
    secret.write_bytes(os.urandom(1024))
    secret.chmod(0o400)
    name = socket.gethostname().split(".")[0]
    (place / "slurm.conf").write_text(f"""
ClusterName=test
SlurmctldHost={name}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge/socket
CryptoType=crypto/munge
CredType=cred/munge
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName={name} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=all Nodes={name} Default=YES State=UP
""")
    monkeypatch.setenv("SLURM_CONF", str(place / "slurm.conf"))
    running = []
    try:
        running.append(subprocess.Popen(
            # --force: parent folders are accessible to other users, as is usual in tests.
            ["munged", "--foreground", "--force", f"--key-file={secret}", f"--socket={place}/munge/socket",
             f"--pid-file={place}/munge/pid", f"--log-file={place}/munge/log", f"--seed-file={place}/munge/seed"],
            stderr=subprocess.DEVNULL,
        ))
        until("munged", lambda: (place / "munge/socket").exists(), 15)
        for daemon in (["slurmctld", "-D"], ["slurmd", "-D"]):
            running.append(subprocess.Popen(daemon, stderr=subprocess.DEVNULL))
        idle = lambda: "idle" in subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True).stdout
        until("an idle node", idle)
        yield place
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        # A step whose exit status is never collected waits for ever.
        for step in steps(place):
            os.kill(step, signal.SIGKILL)
        until("the end of all steps", lambda: not steps(place), 10)


def test_a_job_array_gives_the_tables_of_one_machine(slurm, tmp_path):
    (tmp_path / "array.toml").write_text(EXPERIMENT)
    (tmp_path / "job.sh").write_text(f"""#!/bin/bash
#SBATCH --array=1-4
#SBATCH --cpus-per-task=1
#SBATCH --output=task-%a.log
"{SWELL}" run array.toml -o array --threads 1 --shard $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT
""")
    subprocess.run(["sbatch", "job.sh"], cwd=tmp_path, check=True, capture_output=True)
    queue = lambda: subprocess.run(["squeue", "-h"], capture_output=True, text=True, check=True).stdout.strip()
    until("the array", lambda: not queue(), 180)
    said = "".join(p.read_text() for p in sorted(tmp_path.glob("task-*.log")))
    assert len(list(tmp_path.glob("task-*.log"))) == 4, said
    # The four tasks together performed all eight runs.
    done = [json.loads(p.read_text()) for p in (tmp_path / "array/shards").glob("*-of-4/runs.json")]
    assert [len(shard["runs"]) for shard in done] == [2, 2, 2, 2], said
    subprocess.run([SWELL, "run", "array.toml", "-o", "array", "--json"], cwd=tmp_path, capture_output=True)
    subprocess.run([SWELL, "run", "array.toml", "-o", "alone", "--json"], cwd=tmp_path, capture_output=True)
    for table in ("requests", "bins"):
        assert (tmp_path / f"array/{table}.parquet").read_bytes() == (tmp_path / f"alone/{table}.parquet").read_bytes(), said


def test_a_sweep_by_submitit_runs_under_slurm(slurm, tmp_path, monkeypatch):
    submitit = package("submitit")
    import groundswell

    monkeypatch.chdir(tmp_path)
    executor = submitit.AutoExecutor("log", cluster="slurm")
    executor.update_parameters(timeout_min=5, cpus_per_task=1)
    grid = {"network.delay": ["2ms", "20ms"]}
    sweep = groundswell.sweep(EXPERIMENT, grid, executor, output="swept")
    assert all(cell.done for cell in sweep)
    assert sweep.results.equals(groundswell.sweep(EXPERIMENT, grid, output="plain").results)
    assert json.loads(pathlib.Path("swept/sweep.json").read_text())["cells"]


def test_a_sweep_by_dask_jobqueue_runs_under_slurm(slurm, tmp_path, monkeypatch):
    jobqueue, distributed = package("dask_jobqueue"), package("distributed")
    import groundswell

    monkeypatch.chdir(tmp_path)
    grid = {"network.delay": ["2ms", "20ms"]}
    jobs = lambda: set(subprocess.run(["squeue", "-h", "-o", "%i"], capture_output=True, text=True, check=True).stdout.split())
    with jobqueue.SLURMCluster(
        cores=1,
        processes=1,
        memory="1GB",
        walltime="00:05:00",
        interface="lo",
        log_directory="log",
        # The node of this test has no memory to hand out.
        job_directives_skip=["--mem"],
        scheduler_options={"dashboard_address": None},
    ) as cluster:
        cluster.scale(jobs=2)
        with distributed.Client(cluster) as client:
            client.wait_for_workers(1, timeout=120)
            began = jobs()
            assert began, "workers are jobs of SLURM"
            ended = []

            def cancels(_cell):
                # As at the end of a job's time: its worker dies, and its batch runs on another.
                if not ended:
                    ended.append(min(began))
                    subprocess.run(["scancel", ended[0]], check=True)
                    cluster.scale(jobs=2)

            sweep = groundswell.sweep(EXPERIMENT, grid, client.get_executor(), output="swept", on_result=cancels)
    assert all(cell.done for cell in sweep) and ended
    assert sweep.results.equals(groundswell.sweep(EXPERIMENT, grid, output="plain").results)
    until("the end of all jobs", lambda: not jobs())
