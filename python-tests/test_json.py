"""Tests the output of --json: real outputs against the schema, and the schema against incompatible changes."""
import copy
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import struct
import subprocess

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMA = json.loads((ROOT / "schema/output.json").read_text())
EXPERIMENT = """
name = "small"
[network]
rate = "10Mbit"
delay = "5ms"
[[foreground]]
name = "page"
kind = "web"
object = "20kB"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "learnt"
kind = "learnt"
model = "browsing"
rate = "4Mbit"
[[background]]
name = "poisson"
kind = "poisson"
rate = "match:learnt"
[run]
replications = 2
warmup = "1s"
duration = "4s"
"""


@pytest.fixture(scope="module")
def reference():
    loader = importlib.machinery.SourceFileLoader("reference", str(ROOT / "scripts/reference"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("reference", loader))
    loader.exec_module(module)
    return module


def closed(schema):
    """The same schema without undescribed fields."""
    if isinstance(schema, list):
        return [closed(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    made = {k: closed(v) for k, v in schema.items()}
    if isinstance(schema.get("properties"), dict):
        made.setdefault("additionalProperties", False)
    return made


def strict():
    """A validator that accepts the described outputs and nothing else."""
    # The fields of an alternative belong to the whole object, so only the whole is closed.
    whole = {**SCHEMA, "$defs": closed(SCHEMA["$defs"]), "unevaluatedProperties": False}
    return jsonschema.Draft202012Validator(whole)


def printed(*command, cwd, code=(0, 3)):
    done = subprocess.run([os.environ["SWELL"], "--json", *command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode in code, done.stderr
    return json.loads(done.stdout)


COMMANDS = {
    "run": ["run", "small.toml"],
    "run of one": ["run", "small.toml", "--set", "run.replications=1"],
    "run of nothing": ["run", "small.toml", "--set", "foreground.page.object=900MB"],
    "shard": ["run", "small.toml", "--shard", "1/2"],
    "study": ["study", "buffers", "--quick", "--seeds", "2"],
    "under": ["under", "none", "--rate", "10Mbit", "--quiet", "--", "true"],
    "under --compare": ["under", "browsing", "--load", "1Mbit", "--rate", "10Mbit", "--compare", "2", "--", "sleep", "0.2"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_printed_is_what_the_schema_describes(name, tmp_path):
    (tmp_path / "small.toml").write_text(EXPERIMENT)
    document = printed(*COMMANDS[name], cwd=tmp_path)
    assert document["format"] == 1 and document["command"] == name.split()[0]
    strict().validate(document)


def test_comparisons_are_as_described_and_a_field_that_nobody_described_is_found(tmp_path):
    (tmp_path / "small.toml").write_text(EXPERIMENT)
    printed("run", "small.toml", "-o", "one", cwd=tmp_path)
    printed("run", "small.toml", "-o", "other", "--set", "network.rate=8Mbit", "--set", "run.seed=9", cwd=tmp_path)
    document = printed("compare", "one", "other", "--html", "page.html", cwd=tmp_path)
    strict().validate(document)
    assert document["command"] == "compare"
    for place in (document, document["comparisons"][0], document["comparisons"][0]["conditions"][0]["judged"][0]["ratio"]):
        place["extra"] = 1
        assert not strict().is_valid(document)
        jsonschema.Draft202012Validator(SCHEMA).validate(document)
        del place["extra"]
    del document["comparisons"][0]["differs"]
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(document)


def verdict(schema):
    return schema["$defs"]["BackgroundVerdict"]


CHANGES = {
    "a field that goes away": lambda s: verdict(s)["properties"].pop("matters"),
    "a field that changes its type": lambda s: verdict(s)["properties"].update(kind={"type": "integer"}),
    "a field that may be null": lambda s: verdict(s)["properties"].update(requests={"type": ["integer", "null"]}),
    "a field that may be missing": lambda s: verdict(s)["required"].remove("failed"),
    "items of another type": lambda s: verdict(s)["properties"]["withheld"].update(items={"type": "number"}),
    "a command without its report": lambda s: s["oneOf"][0]["properties"].pop("report"),
    "a command that goes away": lambda s: s["oneOf"].pop(0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_would_break_programs_is_refused(reference, change):
    changed = copy.deepcopy(SCHEMA)
    CHANGES[change](changed)
    assert reference.breaks(SCHEMA, changed)
    # A new version permits it.
    changed["properties"]["format"]["description"] = "The version of this format: 2."
    assert not reference.breaks(SCHEMA, changed)


def test_what_is_added_is_not_refused(reference):
    more = copy.deepcopy(SCHEMA)
    verdict(more)["properties"]["jitter"] = {"type": "number"}
    verdict(more)["properties"]["requests"] = {"type": "integer", "minimum": 1}
    more["oneOf"].append({"type": "object", "properties": {"command": {"type": "string", "const": "other"}}, "required": ["command"]})
    assert not reference.breaks(SCHEMA, more) and not reference.breaks(SCHEMA, SCHEMA)
    # In the other direction, fields disappear.
    assert reference.breaks(more, SCHEMA)


def documented(command):
    """The outermost fields of a command without a schema, as the manual has them."""
    page = (ROOT / "docs/reference/json.md").read_text()
    rows = dict(re.findall(r"^\| `swell (\w+)(?: MODEL)?` \| (?:a list|an object) \| (.*) \|$", page, re.M))
    return set(re.findall(r"`(\w+)`", re.sub(r" \([^)]*\)", "", rows[command])))


def test_other_commands_print_the_fields_of_the_manual(tmp_path):
    (tmp_path / "small.toml").write_text(EXPERIMENT)
    run = printed("run", "small.toml", cwd=tmp_path)["run"]
    # Two packets of a connection: a header of the file, and IPv4 and TCP without payload.
    ip = bytes.fromhex("4500002800010000400600000a000001c0000202")
    tcp = [bytes.fromhex(h) for h in ("03e8005000000001000000005002ffff00000000", "005003e800000009000000025012ffff00000000")]
    packets = [ip + tcp[0], ip[:12] + ip[16:] + ip[12:16] + tcp[1]]
    frame = lambda n, p: struct.pack("<IIII", n, 0, len(p), len(p)) + p
    traces = tmp_path / "two.pcap"
    traces.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101) + b"".join(frame(n, p) for n, p in enumerate(packets)))
    for command in (["doctor"], ["models"], ["show", "browsing"], ["fidelity", "browsing"], ["learn", "two.pcap", "-o", "two.json"], ["report", run]):
        found = printed(*command, cwd=tmp_path, code=(0, 1, 3))
        fields = set().union(*(found if isinstance(found, list) else [found]))
        assert fields == documented(command[0]), command
