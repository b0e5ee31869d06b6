"""Checks the tour of the code: every function that it names must be in the named file."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = {page: ROOT / page for page in ("docs/code-tour.md", "ARCHITECTURE.md")}
STEP = re.compile(r"`([\w./-]+\.rs):(\w+)`")


def missing(text):
    """Steps whose file or function does not exist."""
    for file, function in STEP.findall(text):
        path = ROOT / "crates" / file
        if not path.is_file() or not re.search(rf"\bfn {function}\b", path.read_text()):
            yield f"{file}:{function}"


@pytest.mark.parametrize("page", PAGES)
def test_functions_exist(page):
    text = PAGES[page].read_text()
    assert list(missing(text)) == []


def test_the_tour_has_three_walks():
    walks = PAGES["docs/code-tour.md"].read_text().split("\n## ")[1:]
    assert len(walks) == 3
    assert all(len(STEP.findall(walk)) >= 10 for walk in walks)


def test_a_function_that_does_not_exist_is_found():
    assert list(missing("`world/src/world.rs:dance` `world/src/nowhere.rs:run`")) == ["world/src/world.rs:dance", "world/src/nowhere.rs:run"]
