"""No file of a crate imports another in a circle.

The rule:

* An import, by `use` or by an inline path, leads to the file that defines the item. So a re-export (`pub use`) and a
  declaration (`mod`) are no imports.
* A file that adds methods to a type of a file above it (`impl World` in `world/look.rs`) is a part of that file.
  Imports between the two do not count, and its imports count as those of the file above.
* All other imports count, also between a file and those in its folder. What both need goes to a third file.

Methods are not imports: only names are followed. Tests do not count.
"""
import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = {"tests", "testing", "test_support"}
# Circles that may stay, as sets of files, with the reason.
ALLOWED = {}

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:[^"\\]|\\.)*"|b?\'(?:[^\'\\]|\\.[^\']*)\'', re.S)
USE = re.compile(r"\b(?P<public>pub(?:\([^)]*\))?\s+)?use\s+(?P<tree>[^;]+);")
DEFINITION = r"\b(?:fn|struct|enum|trait|type|const|static|union|mod|macro_rules!)\s+%s\b"
IMPL = re.compile(r"\bimpl\b(?:\s*<[^{;]*?>)?\s+(\w+)(?:<[^{;]*>)?\s*(?:where[^{]*)?\{")
PATH = re.compile(r"(?<![\w:.])([a-z_]\w*(?:\s*::\s*\w+)+)")


def code(text):
    """The text without comments, the contents of literals, and items that only tests compile."""
    text = TOKEN.sub(lambda m: " " if m[0].startswith("/") else '""', text)
    while found := re.search(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*", text):
        end, depth = found.end(), 0
        while end < len(text):
            depth += {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}.get(text[end], 0)
            end += 1
            if depth == 0 and text[end - 1] in "};":
                break
        text = text[: found.start()] + text[end:]
    return text


def paths(tree, prefix=()):
    """The paths of a `use`, each with its name in the file."""
    depth, parts = 0, [""]
    for letter in tree:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    for part in filter(None, map(str.strip, parts)):
        if group := re.match(r"(?:(.*?)::\s*)?\{(.*)\}$", part, re.S):
            yield from paths(group[2], prefix + segments(group[1] or ""))
            continue
        path, _, name = re.sub(r"\s+", " ", part).partition(" as ")
        path = prefix + segments(path)
        path = path[:-1] if path[-1] == "self" else path
        yield path, name or path[-1]


def segments(path):
    return tuple(filter(None, map(str.strip, path.split("::"))))


class Crate:
    """The files of a crate, by module path, and what they import."""

    def __init__(self, files):
        self.text, self.names, self.wild, self.used = {}, {}, {}, {}
        for file, text in files.items():
            module = tuple(pathlib.PurePath(file).with_suffix("").parts)
            module = module[:-1] if module[-1] == "mod" or module in {("lib",), ("main",)} else module
            if TESTS.isdisjoint(module):
                self.text[module] = code(text)
        for module, text in self.text.items():
            rest = re.sub(r"\bmod\s+\w+\s*;", " ", USE.sub(" ", text))
            words = set(re.findall(r"\w+", rest))
            uses = [(m["public"], p, n) for m in USE.finditer(text) for p, n in paths(m["tree"])]
            self.names[module] = {name: path for _, path, name in uses}
            self.wild[module] = [path[:-1] for _, path, name in uses if name == "*"]
            self.used[module] = [p for public, p, name in uses if not public or name in words]
            for found in PATH.finditer(rest):
                path = segments(found[1])
                first = self.names[module].get(path[0])
                self.used[module].append(first + path[1:] if first else path)

    def definer(self, module, path, seen=()):
        """The file that defines the item of a path; nothing if that is in another crate."""
        at, path = module, list(path)
        if path[0] == "crate":
            at, path = (), path[1:]
        elif path[0] in ("self", "super"):
            while path and path[0] in ("self", "super"):
                at = at[:-1] if path.pop(0) == "super" else at
        elif at + (path[0],) not in self.text:
            return None
        while path and at + (path[0],) in self.text:
            at += (path.pop(0),)
        if not path or (at, path[0]) in seen:
            return at
        seen += ((at, path[0]),)
        if found := self.names[at].get(path[0]):
            return self.definer(at, found + tuple(path[1:]), seen)
        for wild in self.wild[at] if path[0] != "*" else ():
            found = self.definer(at, wild + (path[0],), seen)
            if found is not None and re.search(DEFINITION % re.escape(path[0]), self.text[found]):
                return found
        return at

    def whole(self, module):
        """The file that a file is a part of, because it adds methods to a type of it."""
        types = set(IMPL.findall(self.text[module]))
        above = set()
        for name in types:
            ways = [self.names[module].get(name)] + [wild + (name,) for wild in self.wild[module]]
            found = {self.definer(module, way) for way in ways if way} - {None, module}
            above |= {at for at in found if at == module[: len(at)]}
        above = {at for at in above if any(re.search(DEFINITION % name, self.text[at]) for name in types)}
        return self.whole(max(above, key=len)) if above else module

    def imports(self):
        whole = {module: self.whole(module) for module in self.text}
        found = {module: set() for module in set(whole.values())}
        for module, used in self.used.items():
            definers = {self.definer(module, path) for path in used} - {None}
            found[whole[module]] |= {whole[at] for at in definers} - {whole[module]}
        return found


def circles(imports):
    """Strongly connected components of more than one file."""
    def reach(start):
        seen, left = set(), [start]
        while left:
            for at in imports[left.pop()] - seen:
                seen.add(at)
                left.append(at)
        return seen

    reached = {at: reach(at) for at in imports}
    found = {frozenset(b for b in reached[a] if a in reached[b]) for a in imports if a in reached[a]}
    return {frozenset("::".join(("crate",) + at) for at in circle) for circle in found}


def test_no_files_import_each_other_in_a_circle():
    counted, found = 0, {}
    for crate in sorted((ROOT / "crates").iterdir()):
        source = crate / "src"
        files = {str(f.relative_to(source)): f.read_text() for f in source.rglob("*.rs")}
        imports = Crate(files).imports()
        counted += sum(map(len, imports.values()))
        found |= {(crate.name, circle): sorted(circle) for circle in circles(imports)}
    # The resolver sees imports at all.
    assert counted > 1000, counted
    assert {key: files for key, files in found.items() if key not in ALLOWED} == {}
    assert set(ALLOWED) <= set(found), "a circle that is allowed no longer exists"


def circles_of(**files):
    return circles(Crate({f"{name.replace('__', '/')}.rs": text for name, text in files.items()}).imports())


def test_a_circle_is_found_through_re_exports_groups_and_inline_paths():
    lib = "mod a; mod b; mod c;"
    direct = circles_of(lib=lib, a="use crate::b::B; struct A(B);", b="fn f() { crate::a::A }")
    assert direct == {frozenset({"crate::a", "crate::b"})}
    # `b` takes it from where `a` re-exports it, and so imports `c`.
    passed_on = dict(lib=lib, a="pub use crate::c::C; use crate::b::B; fn f(_: B) {}", b="use crate::{a::{C}}; struct B(C);")
    assert circles_of(**passed_on, c="struct C;") == set()
    assert circles_of(**passed_on, c="use super::b; fn f() { b::g() } struct C;") == {frozenset({"crate::b", "crate::c"})}


def test_a_file_and_its_folder_are_a_circle_unless_the_one_extends_a_type_of_the_other():
    lib, parent = "mod a;", "mod b; struct A; const N: u32 = 1; fn f() { b::g() }"
    assert circles_of(lib=lib, a=parent, a__b="use super::N; fn g() { N }") == {frozenset({"crate::a", "crate::a::b"})}
    assert circles_of(lib=lib, a=parent, a__b="use super::{A, N}; impl A {} fn g() { N }") == set()
    # It is a part of the file then, so its imports are that file's.
    third = dict(lib="mod a; mod c;", a=parent, a__b="use super::A; use crate::c::C; impl A {} fn g(_: C) {}")
    assert circles_of(**third, c="use crate::a::A; struct C(A);") == {frozenset({"crate::a", "crate::c"})}


def test_what_only_tests_compile_does_not_count():
    text = "// use crate::b::B;\n#[cfg(test)] mod tests { use crate::b::B; fn f() { B } }\nstruct A;"
    assert circles_of(lib="mod a; mod b;", a=text, b="use crate::a::A; struct B(A);") == set()
