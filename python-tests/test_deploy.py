"""Checks the files of deploy/ with their own validators if installed, and starts what they start."""
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys

import pytest
import yaml

from conftest import programs, skip

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
SWELL = os.environ["SWELL"]
TOKEN = "0123456789abcdef"


@pytest.fixture
def place(tmp_path):
    """A directory with a token, and one for the agent's state."""
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o440)
    (tmp_path / "state").mkdir()
    return tmp_path


def beside_python(program):
    """A program that requirements.txt installs beside this Python, or that is installed elsewhere."""
    path = shutil.which(program, path=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")
    return path or skip(f"{program} is not installed (python-tests/requirements.txt has it)")


def local(words, place):
    """The arguments of a command with the paths of `place` and free ports."""
    files = {"/etc/swell/token": place / "token", "/var/lib/swell": place / "state", "0.0.0.0:8471": "127.0.0.1:0", "8472": "0"}
    return [str(files.get(word, word)) for word in words]


def runs(words, before=()):
    """Starts an agent, waits until it listens, and terminates it as a service manager does. Returns its fingerprint."""
    agent = subprocess.Popen([*before, SWELL, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        fingerprint = agent.stdout.readline().strip()
        assert re.fullmatch("[0-9a-f]{64}", fingerprint), agent.stderr.read()
        pid = agent.pid
        if before:
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            pid = int(children[0])
        os.kill(pid, signal.SIGTERM)
        assert agent.wait(timeout=60) == 0, agent.stderr.read()
        return fingerprint
    finally:
        agent.kill()
        agent.wait()
        agent.stdout.close()
        agent.stderr.close()


def unit():
    """The settings of the systemd unit, by section."""
    settings, section = {}, None
    for line in (DEPLOY / "swell-agent.service").read_text().splitlines():
        if line.startswith("["):
            section = settings.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            assert key not in section, line
            section[key] = value
    return settings


def test_the_service_runs_and_is_the_same_after_a_restart(place):
    service = unit()["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program == "/usr/local/bin/swell"
    assert service["LoadCredential"].split(":")[0] == "token" and service["StateDirectory"] == "swell"
    given = {
        "${CREDENTIALS_DIRECTORY}/token": ["/etc/swell/token"],
        "${STATE_DIRECTORY}": ["/var/lib/swell"],
        "$OPTIONS": ["--max-rate", "50Mbit", "--allow-peer", "10.0.0.0/8"],
    }
    words = [own for word in words for own in given.get(word, [word])]
    assert not [word for word in words if "$" in word]
    words = local(words, place)
    assert runs(words) == runs(words)
    key = place / "state/agent.key"
    assert key.stat().st_mode & 0o077 == 0


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    programs("systemd-analyze")
    # The validator also checks that the program exists.
    text = (DEPLOY / "swell-agent.service").read_text().replace("/usr/local/bin/swell", SWELL)
    copy = tmp_path / "swell-agent.service"
    copy.write_text(text)
    out = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True)
    assert out.returncode == 0 and not out.stderr, out.stderr


def container(name):
    """Instructions of a Containerfile, the last of each kind."""
    lines = (DEPLOY / name).read_text().replace("\\\n", " ").splitlines()
    return dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))


def test_the_first_process_of_a_container_runs_and_ends_when_asked(place):
    image = container("Containerfile")
    assert json.loads(image["ENTRYPOINT"]) == ["/usr/local/bin/swell"]
    words = json.loads(image["CMD"])
    assert f"0.0.0.0:{image['EXPOSE'].split('/')[0]}" in words
    # The kernel drops signals to an init process without a handler.
    before = ["unshare", "--pid", "--fork", "--kill-child", "--"]
    if subprocess.run([*before, "true"], capture_output=True).returncode:
        skip("no process namespace can be made here")
    runs(local(words, place), before)


def test_the_manifests_fit_each_other_and_the_program(place):
    daemons, policy = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    assert (daemons["apiVersion"], daemons["kind"]) == ("apps/v1", "DaemonSet")
    assert (policy["apiVersion"], policy["kind"]) == ("networking.k8s.io/v1", "NetworkPolicy")
    labels = daemons["spec"]["template"]["metadata"]["labels"]
    assert daemons["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert daemons["metadata"]["namespace"] == policy["metadata"]["namespace"]
    pod = daemons["spec"]["template"]["spec"]
    (agent,) = pod["containers"]
    words = agent["args"]
    option = lambda name: words[words.index(name) + 1]
    declared = {(p["containerPort"], p["protocol"]) for p in agent["ports"]}
    control, traffic = int(option("--listen").rsplit(":")[-1]), int(option("--port"))
    assert declared == {(control, "TCP"), (traffic, "TCP"), (traffic, "UDP")}
    opened = {(p["port"], p["protocol"]) for rule in policy["spec"]["ingress"] for p in rule["ports"]}
    assert opened == declared
    assert agent["readinessProbe"]["tcpSocket"]["port"] in {p["name"] for p in agent["ports"]}
    # All files that the agent reads and writes are mounted, and every mount is a volume.
    mounts = {m["mountPath"]: m for m in agent["volumeMounts"]}
    assert mounts[os.path.dirname(option("--token-file"))]["readOnly"] and "readOnly" not in mounts[option("--state")]
    assert {m["name"] for m in agent["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
    secret = next(v["secret"] for v in pod["volumes"] if "secret" in v)
    assert secret["defaultMode"] & 0o004 == 0, "a token that everyone can read is refused"
    assert agent["securityContext"]["readOnlyRootFilesystem"] and pod["securityContext"]["runAsNonRoot"]
    assert str(pod["securityContext"]["runAsUser"]) == container("Containerfile")["USER"]
    runs(local(words, place))


def test_prometheus_reads_what_agents_serve():
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())["scrape_configs"]
    assert job["scheme"] == "https" and job["authorization"]["type"] == "Bearer"
    assert "metrics_path" not in job, "/metrics is the default"
    port = container("Containerfile")["EXPOSE"].split("/")[0]
    assert all(t.endswith(f":{port}") for c in job["static_configs"] for t in c["targets"])
    programs("promtool")
    subprocess.run(["promtool", "check", "config", "--syntax-only", DEPLOY / "prometheus.yaml"], check=True)


def test_manifests_have_the_keys_of_kubernetes():
    manifests = [DEPLOY / "kubernetes.yaml", DEPLOY / "kubernetes-shards.yaml"]
    # `--strict` refuses unknown keys, which a cluster would drop or refuse.
    out = subprocess.run([beside_python("kubernetes-validate"), "--strict", *manifests], capture_output=True, text=True)
    assert out.returncode == 0, out.stdout + out.stderr
    assert (out.stdout + out.stderr).count(" passed for resource ") == 4, out.stdout + out.stderr


def test_files_that_build_containers_have_no_faults():
    files = sorted(DEPLOY.rglob("Containerfile*"))
    assert len(files) == 3
    # Versions of Debian's packages are not pinned: its archive keeps only the newest.
    out = subprocess.run([beside_python("hadolint"), "--no-color", "--ignore", "DL3008", *files], capture_output=True, text=True)
    assert out.returncode == 0 and not out.stdout, out.stdout + out.stderr


def test_the_network_of_the_quic_runner_has_what_it_runs():
    image = container("quic/Containerfile")
    script = ROOT / "deploy/quic/run.sh"
    assert f"COPY {script.relative_to(ROOT)} {json.loads(image['ENTRYPOINT'])[0]}" in (DEPLOY / "quic/Containerfile").read_text()
    assert os.access(script, os.X_OK)
    for tool in ("iptables", "socat", "tcpdump"):
        assert tool in script.read_text() and tool in image["RUN"]


def test_services_of_compose_talk_through_the_link():
    programs("ip", "unshare")
    space = ["unshare", "-mn" if os.geteuid() == 0 else "-Urmn", "--", "true"]
    if subprocess.run(space, capture_output=True).returncode:
        skip("no network namespaces can be made here")
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    images = {service["image"] for service in compose["services"].values()}
    assert images == {"groundswell", "docker.io/library/python:3.13-slim"}
    # The container that routes needs `ip`.
    assert "iproute2" in (DEPLOY / "Containerfile.swell").read_text()
    out = subprocess.run([sys.executable, ROOT / "scripts/compose-check", SWELL], capture_output=True, text=True)
    assert out.returncode == 0, out.stdout + out.stderr
    assert out.stdout.count("good: ") == 6, out.stdout


def test_the_ansible_role_sets_up_agents_that_a_controller_finds(tmp_path):
    playbook = beside_python("ansible-playbook")
    beside = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    ports = []
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as free:
            ports.append(free.getsockname()[1])
    hosts = zip(["left", "right"], ["client", "server"], ports)
    lines = [f"{name} swell_part={part} swell_port={port} swell_root={tmp_path}/{name}" for name, part, port in hosts]
    own = f"ansible_host=127.0.0.1 ansible_connection=local ansible_python_interpreter={sys.executable}"
    (tmp_path / "hosts").write_text("[swell]\n" + "".join(f"{line} {own}\n" for line in lines))
    given = {"swell_program": SWELL, "swell_fleet": f"{tmp_path}/fleet", "swell_service": False, "swell_options": "--max-rate 80Mbit"}
    play = [playbook, "-i", tmp_path / "hosts", "-e", json.dumps(given), DEPLOY / "ansible/agents.yml"]
    environment = {**os.environ, "ANSIBLE_HOME": str(tmp_path / "ansible"), "ANSIBLE_PIPELINING": "1", "LC_ALL": "C.UTF-8", "PATH": beside}
    said = ""
    for _ in range(2):
        out = subprocess.run(play, capture_output=True, text=True, env=environment)
        said = out.stdout + out.stderr
        assert out.returncode == 0, said
    assert len(re.findall("changed=0 ", said)) == 3, "the second time nothing changes: " + said
    agents = []
    try:
        for name, port in zip(["left", "right"], ports):
            root = tmp_path / name
            (line,) = [l for l in (root / "etc/systemd/system/swell-agent.service").read_text().splitlines() if l.startswith("ExecStart=")]
            assert f"--listen 0.0.0.0:{port} " in line
            files = {"${CREDENTIALS_DIRECTORY}/token": root / "etc/swell/token", "${STATE_DIRECTORY}": root / "var/lib/swell", "8472": "0"}
            options = (root / "etc/swell/agent.env").read_text().removeprefix("OPTIONS=").split()
            words = shlex.split(line.removeprefix("ExecStart="))
            words = [str(files.get(word, word)).replace("0.0.0.0", "127.0.0.1") for word in words[:-1]] + options
            words[0] = str(root) + words[0]
            agents.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        for agent in agents:
            assert re.fullmatch("[0-9a-f]{64}", agent.stdout.readline().strip())
        run = [SWELL, "--json", "generate", "--closed", "2", "--down", "1kB", "--duration", "1s"]
        out = subprocess.run([*run, "--fleet", tmp_path / "fleet/fleet.toml", "-o", tmp_path / "run"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert out.returncode == 0, out.stderr
        assert [c["agent"] for c in json.loads(out.stdout)["clients"]] == ["left"]
    finally:
        for agent in agents:
            agent.kill()
            agent.wait()
            agent.stdout.close()
        for name in ["left", "right"]:
            (tmp_path / name / "usr/local/bin/swell").unlink(missing_ok=True)
