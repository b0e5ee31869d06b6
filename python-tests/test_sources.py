"""Checks that apply to every source file."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("crates", "fuzz/fuzz_targets")
# A larger file must be split (CONTRIBUTING.md).
LINES = 600


def test_files_are_short():
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.rs") if "target" not in path.parts]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in files}
    assert len(lengths) > 100
    assert {path: n for path, n in lengths.items() if n > LINES} == {}
