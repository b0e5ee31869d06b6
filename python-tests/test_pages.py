"""Tests the documentation: examples run, commands exist, links have targets.

Fences called `sh` and `python` run in the order of their page, in a directory with `experiments/` and a trace. In all other
fences, a line that starts with `swell` must name an existing command and existing options."""
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

import pytest

from conftest import programs, skip

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md")) + [ROOT / "README.md"]
# Its blocks need their own directories: test_tables.py runs them.
ELSEWHERE = {DOCS / "results.md"}
# They emulate: once as the user of the tests, and once without any rights.
EMULATED = [DOCS / "how-to/own-program.md", DOCS / "how-to/rootless.md"]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.M | re.S)


def name(page):
    return str(page.relative_to(ROOT))


def fences(page):
    return [(m[1], m[2]) for m in FENCE.finditer(page.read_text())]


def runs(page):
    return [f for f in fences(page) if f[0] in ("sh", "python")]


@pytest.fixture(scope="session")
def trace(tmp_path_factory):
    """A packet trace of twenty seconds of a link."""
    place = tmp_path_factory.mktemp("trace")
    experiment = """
name = "trace"
[network]
rate = "10Mbit"
[[foreground]]
name = "page"
kind = "web"
object = "100kB"
clients = 3
think = "200ms"
[[background]]
name = "none"
kind = "none"
[run]
replications = 1
warmup = "1s"
duration = "20s"
"""
    (place / "trace.toml").write_text(experiment)
    subprocess.run([os.environ["SWELL"], "run", "trace.toml", "-o", "run", "--packets"], cwd=place, check=True, capture_output=True)
    [found] = (place / "run/packets").glob("*.pcapng")
    return found


def wrapped(swell, folder):
    """A folder with the program, for which a verdict that is not settled is no failure: replications are few."""
    folder.mkdir()
    program = folder / "swell"
    program.write_text(f'#!/bin/sh\n"{swell}" "$@"; code=$?; [ $code -ne 3 ] || code=0; exit $code\n')
    program.chmod(0o755)


@pytest.mark.parametrize("page", [p for p in PAGES if runs(p) and p not in {*ELSEWHERE, *EMULATED}], ids=name)
def test_what_is_said_to_run_runs(page, tmp_path, monkeypatch, trace):
    monkeypatch.chdir(tmp_path)
    wrapped(pathlib.Path(os.environ["SWELL"]).resolve(), tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    (tmp_path / "trace.pcap").symlink_to(trace)
    names = {"__name__": "page"}
    for language, text in runs(page):
        if language == "sh":
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True)
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        else:
            exec(compile(text, name(page), "exec"), names)


@pytest.fixture
def anyones():
    """A directory that every user may enter and write to, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as made:
        os.chmod(made, 0o777)
        yield pathlib.Path(made)


@pytest.mark.parametrize("rights", ["as-it-is", "without-rights"])
@pytest.mark.parametrize("page", EMULATED, ids=name)
def test_what_is_said_to_run_under_emulation_runs(page, rights, anyones):
    programs("curl", "wrk", "setpriv")
    # The folder of the checkout may be closed to others.
    swell = shutil.copy(os.environ["SWELL"], anyones / "program")
    wrapped(swell, anyones / "bin")
    user = []
    if rights == "without-rights" and os.geteuid() == 0:
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
    own = {**os.environ, "PATH": f"{anyones / 'bin'}:{os.environ['PATH']}", "HOME": str(anyones)}
    call = lambda *words: subprocess.run([*user, *words], cwd=anyones, env=own, capture_output=True, text=True)
    doctor = call("swell", "doctor")
    if doctor.returncode:
        skip(f"no emulation: {doctor.stdout}{doctor.stderr}")
    assert not user or "without root" in doctor.stdout, doctor.stdout
    blocks = runs(page)
    assert len(blocks) == len(fences(page)), "a block does not run"
    for language, text in blocks:
        done = call("bash", "-euo", "pipefail", "-c", text)
        assert language == "sh" and done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


@functools.cache
def options(*command):
    """The commands and options in the help of a command."""
    done = subprocess.run([os.environ["SWELL"], *command, "--help"], capture_output=True, text=True)
    if done.returncode != 0:
        return None
    return set(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", done.stdout)), set(re.findall(r"^  (\w[\w-]*)  ", done.stdout, re.M))


def commands(text):
    """Command lines of `swell`, with continuation lines joined."""
    for line in text.replace("\\\n", " ").splitlines():
        line = re.sub(r"^\s*(?:-\s+(?:run:\s*)?)?(?:\$\s+)?", "", line)
        if re.match(r"swell [a-z]", line):
            yield line


def wrong(line):
    """The parts of a command line that do not exist."""
    try:
        words = shlex.split(line, comments=True)[1:]
    except ValueError:
        return f"{line}: it cannot be read"
    command = []
    for word in words:
        known = options(*command, word) if re.fullmatch(r"[a-z]+", word) else None
        if known is None or (command and word not in options(*command)[1]):
            break
        command.append(word)
    if not command:
        return f"{line}: there is no such command"
    for word in words[len(command) :]:
        if word in ("--", "|", ">"):
            break
        flag = word.split("=")[0]
        if re.match(r"--?[a-zA-Z]", flag) and flag not in options(*command)[0]:
            return f"{line}: there is no {flag}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_and_options_exist(page):
    lines = [line for _, text in fences(page) for line in commands(text)]
    faults = list(filter(None, map(wrong, lines)))
    assert not faults, "\n".join(faults)


def test_a_command_that_does_not_exist_is_found():
    assert "no such command" in wrong("swell dance")
    assert "--warp" in wrong("swell run x.toml --warp 9")
    assert "--warp" in wrong("swell study buffers --warp")
    assert wrong("swell under access-link --rate 20Mbit -- curl --warp") is None


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_blocks_of_toml_json_and_yaml_read(page):
    import tomllib

    import jsonschema
    import yaml

    for language, text in fences(page):
        if language == "toml":
            table = tomllib.loads(text)
            if {"name", "network", "foreground", "background"} <= table.keys():
                jsonschema.validate(table, schema())
        elif language == "json":
            json.loads(text)
        elif language == "yaml":
            assert yaml.safe_load(text)


@functools.cache
def schema():
    return json.loads(subprocess.run([os.environ["SWELL"], "schema"], capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_and_headings(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(FENCE, "", page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} is not there"
        if anchor and file.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", re.sub(FENCE, "", file.read_text()), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in slugs, f"{target}: no such heading"


def test_every_page_is_in_the_book():
    listed = set(re.findall(r"\(([\w/.-]+\.md)\)", (DOCS / "SUMMARY.md").read_text()))
    there = {str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md")} - {"SUMMARY.md"}
    assert listed == there


def test_no_merge_is_half_done():
    left = [
        f"{page.relative_to(ROOT)}:{number}"
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if line.startswith(("<<<<<<< ", ">>>>>>> "))
    ]
    assert not left


def test_sentences_are_short():
    """At most forty words per sentence."""
    pages = [ROOT / "CHANGELOG.md", *PAGES]
    long = []
    for page in pages:
        if "Made by scripts" in page.read_text():
            continue
        text = re.sub(FENCE, "", page.read_text())
        text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("|"))
        for piece in re.split(r"\n\s*\n|\n\s*(?:[*-]|\d+\.)\s|^#+ .*$", text, flags=re.M):
            for sentence in re.split(r"(?<=[.!?])[\s*)]+", re.sub(r"\s+", " ", piece)):
                if len(sentence.split()) > 40:
                    long.append(f"{name(page)}: {sentence}")
    assert not long, "\n\n".join(long)


def test_the_picture_of_the_readme_shows_what_its_caption_says(tmp_path):
    """Poisson packets make every transfer a bit slower; learnt traffic leaves most alone and makes a few very slow."""
    import groundswell

    swell = os.environ["SWELL"]
    done = subprocess.run([swell, "run", "--quick", "-o", "run"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr
    at = {(r["background"], r["percentile"]): r["seconds"] for r in groundswell.Run(tmp_path / "run").slowdown().to_dicts()}
    assert at["none", 0.95] < at["learnt", 0.05] < at["learnt", 0.5] < at["poisson", 0.05]
    assert at["learnt", 0.95] > 1.5 * at["poisson", 0.95] and at["poisson", 0.95] < 1.3 * at["poisson", 0.05]
    subprocess.run([swell, "show", "run", "--svg", "drawn.svg"], cwd=tmp_path, check=True, capture_output=True)
    drawn, kept = (tmp_path / "drawn.svg").read_text(), (DOCS / "quickstart.svg").read_text()
    assert re.findall(r'data-name="([^"]*)"', drawn) == ["none", "poisson", "learnt"]
    assert drawn == kept, "docs/quickstart.svg is stale: scripts/quickstart draws it anew"


def test_the_security_page_names_the_checks_of_dependencies_that_are_made():
    """`scripts/test` is the only place where dependencies are checked."""
    made = re.search(r"cargo deny .* check \S+ (.*)", (ROOT / "scripts/test").read_text()).group(1).split()
    sentence = re.search(r"`cargo deny` checks the (.*) of every dependency", (ROOT / "SECURITY.md").read_text()).group(1)
    named = re.findall(r"\w+", sentence.replace(" and ", " ").replace("licences", "licenses"))
    assert sorted(named) == sorted(made)


def examples():
    """The examples in docstrings of functions of the package, by function."""
    import inspect

    import groundswell

    for function in ("run", "compare", "learn", "study", "sweep", "under"):
        text = inspect.getdoc(getattr(groundswell, function))
        yield function, [code for language, code in FENCE.findall(text) if language == "python"]
    yield "groundswell", [code for language, code in FENCE.findall(groundswell.__doc__) if language == "python"]


@pytest.mark.parametrize(("function", "blocks"), list(examples()), ids=[name for name, _ in examples()])
def test_the_examples_of_docstrings_run(function, blocks, tmp_path, monkeypatch, trace):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.pcap").symlink_to(trace)
    assert blocks, f"{function} has no example"
    for code in blocks:
        exec(compile(code, f"the docstring of {function}", "exec"), {"__name__": "example"})
