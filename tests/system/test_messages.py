"""Messages of the service, the client and the library name no svcctl command: other programs print them, too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import svcctl
from svcctl.cli.commands import NOUNS
from svcctl.cli.hints import HINTS

PACKAGE = Path(svcctl.__file__).parent
FILES = sorted(path for room in ("service", "api") for path in (PACKAGE / room).rglob("*.py"))
COMMAND = re.compile(rf"\bsvcctl (?:-\w|--[a-z]|(?:{'|'.join(NOUNS)}|help|service)\b)")
OPTION = re.compile(r"(?<![\w-])--[a-z]")
OPTIONS = {
    "api/foreign_functions.py": 1,
    "service/accounts/accounts.py": 1,
    "service/accounts/seed.py": 1,
    "service/accounts/users.py": 2,
    "service/engines/__init__.py": 1,
    "service/listeners.py": 2,
    "service/loading/load.py": 2,
    "service/loading/recognition.py": 6,
    "service/loading/skips.py": 5,
    "service/process.py": 3,
    "service/server.py": 3,
    "service/state/folder_identity.py": 2,
    "service/state/postgresql.py": 1,
}
"""How many texts name options of commands, by file. The numbers may only shrink: a reason and its hint replace them."""


def texts(tree: ast.AST) -> Iterator[str]:
    """The texts in code, without docstrings; a value in one is an empty pair of braces."""
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inner.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            inner.update(id(part) for part in node.values)
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value


def texts_in(paths: Iterable[Path]) -> dict[str, list[str]]:
    return {str(path.relative_to(PACKAGE)): list(texts(ast.parse(path.read_text()))) for path in paths}


FOUND = texts_in(FILES)
LIBRARY = texts_in(
    path
    for path in (PACKAGE / "library.py", *(PACKAGE / "dates").glob("*.py"), *(PACKAGE / "profiles").glob("*.py"))
    if path.name != "diagnosis.py"  # it is for a command alone
)
"""The texts of what the library shares with commands."""


def test_no_message_of_the_service_the_client_or_the_library_names_a_command() -> None:
    found = [(name, text) for name, found in (FOUND | LIBRARY).items() for text in found if COMMAND.search(text)]
    assert found == []


def test_messages_that_name_options_get_fewer() -> None:
    named = {name: sum(1 for text in found if OPTION.search(text)) for name, found in FOUND.items()}
    assert {name: count for name, count in named.items() if count} == OPTIONS


@pytest.mark.parametrize(("text", "names"), [("see 'svcctl job list'", True), ("state of svcctl is", False)])
def test_a_command_is_found_in_a_text(text: str, names: bool) -> None:
    [found] = texts(ast.parse(f'hint = f"{text} {{x}}"').body[0].value)  # type: ignore[attr-defined]
    assert bool(COMMAND.search(found)) == names


def test_each_hint_is_for_a_reason_of_the_service_or_the_client() -> None:
    assert set(HINTS) <= {text for found in (FOUND | LIBRARY).values() for text in found}
