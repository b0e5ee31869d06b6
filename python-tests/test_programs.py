"""Programs of many kinds under the emulator, and QUIC through the scenarios of its interop runner.

Here and not among the Rust tests, because requirements.txt installs aioquic beside this Python."""
import os
import pathlib
import subprocess
import sys

from conftest import skip

ROOT = pathlib.Path(__file__).resolve().parent.parent
SWELL = os.environ["SWELL"]


def script(name, *arguments):
    """What a script prints, which succeeds. Its programs find this Python first."""
    doctor = subprocess.run([SWELL, "doctor"], capture_output=True, text=True)
    if doctor.returncode:
        skip(f"no emulation: {doctor.stdout}{doctor.stderr}")
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    words = [ROOT / "scripts" / name, SWELL, *arguments]
    out = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, env={**os.environ, "PATH": path})
    assert out.returncode == 0, out.stdout + out.stderr
    return out.stdout


def test_programs_of_every_kind_run():
    said = script("odd-programs").splitlines()
    tries = [line for line in said if line.split()[0] in ("good", "skipped")]
    assert len(tries) > 50, said
    if len(skipped := [line for line in said if line.startswith("skipped")]):
        skip("; ".join(skipped))


def test_quic_gets_its_files_through_the_scenarios_of_its_runner():
    said = script("quic-check", "--transfers")
    if "skipped" in said:
        skip(said)
    assert said.count("good: QUIC gets its file") == 7, said
