"""Rules of the tests themselves: their length, and what they may know of the code and of its words."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FILES = sorted(str(path.relative_to(TESTS)) for path in TESTS.rglob("*.py"))
FOLDERS = sorted({name.partition("/")[0] for name in FILES})

MOST_LINES = 900
"""Lines of a file."""
WHOLE_MESSAGES = 198
"""Texts of messages that are asserted as a whole outside tables. Lower it with each that goes."""

ABSENT = "Python's own way to have a package that is not there; an environment without each would be made for minutes"

BEHIND_THE_BACK = {
    ("api/wire/test_pool.py", "monkeypatch.setattr(socket, 'getaddrinfo')"): (
        "a name server answers that a name is unknown, or that it does not know now, only when it likes to"
    ),
    ("io/test_extras.py", "monkeypatch.setitem(sys.modules, 'pyzipper')"): ABSENT,
    ("service/destinations/test_kinds.py", "monkeypatch.setitem(sys.modules, 'confluent_kafka')"): ABSENT,
    (
        "service/destinations/test_kinds.py",
        "monkeypatch.setitem(sys.modules, 'svcctl.service.destinations.kafka')",
    ): ABSENT,
    ("storage/test_targets.py", "monkeypatch.setitem(sys.modules, package)"): ABSENT,
    ("support/launcher.py", "control.subprocess = …"): (
        "a service of a test is a fork of a process that has imported it, which takes an eighth of the CPU of a new one"
    ),
    ("support/typed.py", "monkeypatch.setattr(sys, 'stdin')"): (
        "standard input belongs to the process, and pytest has replaced it already"
    ),
}
"""Replacements that tests make: the file and the statement, with the reason. Anything else is passed in: a clock, a
limit, a stream, a transport."""


@cache
def parsed(name: str) -> ast.Module:
    return ast.parse((TESTS / name).read_text(encoding="utf-8"))


def test_a_file_has_no_more_lines_than_somebody_reads_at_once() -> None:
    lines = {name: len((TESTS / name).read_text(encoding="utf-8").splitlines()) for name in FILES}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_is_done_behind_the_back_of_the_code_but_what_has_a_reason(folder: str) -> None:
    files = [name for name in FILES if name.partition("/")[0] == folder]
    found = {(name, use) for name in files for use in behind_the_back(parsed(name))}
    assert found == {(name, use) for name, use in BEHIND_THE_BACK if name in files}


def test_only_files_that_are_there_do_something_behind_the_back_of_the_code() -> None:
    assert {name for name, _ in BEHIND_THE_BACK} <= set(FILES)


REPLACING = {"setattr", "delattr", "setitem", "delitem", "__setattr__"}
"""Methods of `monkeypatch` and `object` that replace what an object has."""


def behind_the_back(module: ast.Module) -> Iterator[str]:
    """Each replacement that a file makes in other code, and each private name that it imports.

    ruff finds private attributes (SLF001) and `unittest.mock` (TID251).
    """
    ours = {name for node in ast.walk(module) for name in imported(node)}
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Attribute(attr=name) as function, args=[*given]) if name in REPLACING:
                yield f"{ast.unparse(function)}({', '.join(ast.unparse(each) for each in given[:2])})"
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[ast.Name(id=name), *_]) if name in ours:
                yield ast.unparse(node)
            case ast.ImportFrom(module=str(source), names=names) if source.partition(".")[0] == "svcctl":
                yield from (f"{source}.{alias.name}" for alias in names if re.match("_(?!_)", alias.name))
            case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()) if name in ours:
                yield f"{ast.unparse(node)} = …"


def imported(node: ast.AST) -> Iterator[str]:
    """The names that an import makes of modules, classes and functions of the package."""
    match node:
        case ast.ImportFrom(module=str(source), names=names) if source.partition(".")[0] == "svcctl":
            yield from (alias.asname or alias.name for alias in names)
        case ast.Import(names=names):
            yield from (alias.asname for alias in names if alias.asname and alias.name.startswith("svcctl."))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("monkeypatch.setattr(jobs, 'PATIENCE', 0)", ["monkeypatch.setattr(jobs, 'PATIENCE')"]),
        ("monkeypatch.setattr('svcctl.x.Y', 0)", ["monkeypatch.setattr('svcctl.x.Y', 0)"]),
        ("monkeypatch.setitem(jobs.TABLE, 'a', 0)", ["monkeypatch.setitem(jobs.TABLE, 'a')"]),
        ("object.__setattr__(job, 'id', 0)", ["object.__setattr__(job, 'id')"]),
        ("from svcctl import jobs\nsetattr(jobs, 'PATIENCE', 0)", ["setattr(jobs, 'PATIENCE', 0)"]),
        ("from svcctl.service.jobs import _turn", ["svcctl.service.jobs._turn"]),
        ("from svcctl.service import jobs\njobs.PATIENCE = 0", ["jobs.PATIENCE = …"]),
        ("import svcctl.service.jobs as module\nmodule.PATIENCE = 0", ["module.PATIENCE = …"]),
        ("jobs = Jobs()\njobs.patience = 0\nself._own = jobs.__doc__", []),
    ],
)
def test_what_is_done_behind_the_back_of_the_code_is_found(source: str, found: list[str]) -> None:
    assert list(behind_the_back(ast.parse(source))) == found


def test_the_words_of_messages_are_tested_where_they_are_made() -> None:
    count = Counter({name: len(list(whole_messages(parsed(name)))) for name in FILES})
    assert count.total() <= WHOLE_MESSAGES, count.most_common(20)


SAID = re.compile(r"stderr|hint|message|str\(|error|\.text|note|printed|said|warn")
"""What is compared when a message is: `done.stderr`, `caught.value.hint`, `str(error)`, `notes`, …"""
LEAST_WORDS = 4


def whole_messages(module: ast.Module) -> Iterator[str]:
    """The texts of several words that asserts compare with what was said; a tuple or a list counts with each text.

    A table is read by name, so its texts are not in the comparison and do not count.
    """
    for node in ast.walk(module):
        for compared in ast.walk(node.test) if isinstance(node, ast.Assert) else ():
            match compared:
                case ast.Compare(left=left, ops=[ast.Eq(), *_], comparators=[right, *_]):
                    yield from messages(right, compared_with=left)
                    yield from messages(left, compared_with=right)


def messages(side: ast.expr, compared_with: ast.expr) -> Iterator[str]:
    if SAID.search(ast.unparse(compared_with)):
        several = side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]
        yield from (said for said in map(literal, several) if said and len(said.split()) >= LEAST_WORDS)


def literal(expression: ast.expr) -> str | None:
    """A text as it is written, with X for what it is filled in with; None for any other expression."""
    match expression:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=pieces):
            return "".join(literal(piece) or "X" for piece in pieces)
        case ast.BinOp(left=left, right=right):
            texts = literal(left), literal(right)
            return None if texts == (None, None) else "".join(text or "X" for text in texts)
    return None


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("assert done.stderr == 'svcctl: error: no job 7\\n'", 1),
        ("assert f'{name} is no job' == str(error)", 1),
        ("assert (error.message, error.hint) == ('there is no job 7', 'list them with ' + command)", 2),
        ("assert done.stderr == EXPECTED[name]", 0),
        ("assert done.stdout == 'one two three four'", 0),
        ("assert done.stderr == 'no such job'", 0),
        ("assert 'no such job is there' in done.stderr", 0),
    ],
)
def test_whole_messages_are_found_outside_tables(source: str, count: int) -> None:
    assert len(list(whole_messages(ast.parse(source)))) == count
