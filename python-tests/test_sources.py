"""Checks that apply to every source file."""
import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("crates", "fuzz/fuzz_targets")
# A larger file must be split (CONTRIBUTING.md).
LINES = 600


def test_files_are_short():
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.rs") if "target" not in path.parts]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in files}
    assert len(lengths) > 100
    assert {path: n for path, n in lengths.items() if n > LINES} == {}


def test_a_module_with_a_folder_is_a_file_beside_it():
    # Modules of tests are folders with a `mod.rs`, because a file beside them would be a test of its own.
    found = [path for path in (ROOT / "crates").glob("*/src/**/mod.rs")]
    assert not found, [str(path.relative_to(ROOT)) for path in found]


def table_of_mutants():
    """The tables of `scripts/mutants-table`, which itself needs a parser of Rust."""
    tree = ast.parse((ROOT / "scripts/mutants-table").read_text())
    names = {"LEARN", "TCP", "QUEUES", "STATS", "PLAYED", "MODULES"}
    wanted = [n for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id in names]
    found = {}
    exec(compile(ast.Module(wanted, []), "mutants-table", "exec"), found)
    return found["MODULES"]


def test_every_file_of_a_module_that_decides_answers_is_in_the_table_of_mutants():
    crates, parts = ROOT / "crates", set()
    named = set()
    # The row of constants takes all files, but only their constants.
    for row, (patterns, _) in table_of_mutants().items():
        for pattern in patterns:
            files = list(crates.glob(pattern))
            assert files, f"{row}: {pattern} names no file"
            if row != "learn-constants":
                named.update(files)
    # A file `x.rs` split off into the folder `x`; and files beside those of a folder of which most are named.
    for file in named:
        parts.update(file.with_suffix("").rglob("*.rs"))
    for folder in ("path/src/qdisc", "tcp/src/sender", "tcp/src/cc", "verdict/src"):
        parts.update((crates / folder).rglob("*.rs"))
    # An interface, a queue, and parts of queues: they decide nothing that the tests of the others would not notice.
    simple = {crates / "path/src/qdisc" / f"{name}.rs" for name in ("contract", "fifo", "priority", "store")}
    left = [f for f in parts - named - simple if f.name != "tests.rs" and "tests" not in f.parts]
    assert not left, sorted(str(f.relative_to(crates)) for f in left)


def test_every_exit_code_of_the_manual_is_in_the_help():
    section = (ROOT / "docs/verdict.md").read_text().split("\n## Exit codes\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d+(?: \+ N)?) \| (.*) \|$", section, re.M)
    assert len(rows) > 10
    # `scripts/reference --check` compares this page with what the program prints.
    helps = (ROOT / "docs/reference/cli.md").read_text()
    of_all = helps.split("\nExit codes: ")[1].split("\nData goes to")[0]
    of_under = helps.split("The exit code is the\nprogram's:")[1].split("\n\n")[0]
    codes = re.compile(r"(?<![\w+] )\b\d+(?: \+ N)?(?= )")
    assert sorted(codes.findall(of_all)) == sorted(code for code, _ in rows)
    assert sorted(codes.findall(of_under)) == sorted(code for code, what in rows if what.startswith("`swell under`"))


def test_continuous_integration_installs_every_program_that_tests_need():
    wanted = set(re.findall(r"^ *want (\S+) ", (ROOT / ".ci/run").read_text(), re.M))
    # Every Debian has these; .ci/run installs Python in another way.
    wanted |= {"bash", "cat", "su", "python3"}
    words = lambda pattern, text: {word for found in re.findall(pattern, text) for word in re.findall(r"[\w-]+", found)}
    needed = set()
    for path in (ROOT / "crates").rglob("*.rs"):
        if path.parent.parent.name != "needs":
            needed |= words(r"programs\(&\[(.*?)\]\)", path.read_text())
    for path in (ROOT / "experiments/programs").iterdir():
        needed |= words(r"\A# needs: (.*)", path.read_text())
    for path in (ROOT / "python-tests").glob("test_*.py"):
        needed |= words(r"(?m)^    programs\((.*)\)$", path.read_text())
    for path in (ROOT / "scripts").iterdir():
        text = path.read_text() if path.is_file() else ""
        needed |= words(r"(?<!def )\bneeds\(((?:\"[\w-]+\",? ?)+)\)", text)
        if path.name == "odd-programs":
            needed |= words(r"(?m)^ *try [\w-]+ \"([\w -]*)\" ", text)
        if path.name == "bridge-check":
            needed |= words(r"\bhas ([a-z0-9 ]+)(?: \|\||; then)", text)
    assert len(needed) > 40
    assert needed <= wanted, needed - wanted
