"""YAML files that describe domains, roles or jobs, with the file and line of each key for messages.

A YAML document has one domain, role or job, or a list of them. A file may have several YAML documents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from svcctl.cli.inputs import text
from svcctl.cli.inputs.variables import filled, variables
from svcctl.errors import UsageError
from svcctl.io import yaml_text
from svcctl.io.yaml_text import Tree, YamlError
from svcctl.words import did_you_mean

COMMAND_LINE = "the options"
"""The words that messages use in place of a file name if a role comes from options."""


class FileError(UsageError):
    """An error in a file, or in options that replace a file. `line` is the line number; None if it is not known."""

    def __init__(self, source: str, line: int | None, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"{_place(source, line)}: {problem}", hint=hint)
        self.line = line
        self.problem = problem


def _place(source: str, line: int | None) -> str:
    """Describe a place in messages, such as `role.yaml, line 3` or `the options`."""
    return source if line is None else f"{source}, line {line}"


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """A domain, role or job in a file: its fields, and the line of each field.

    In `lines`, an inner field has a name such as `resourceIds.<label>`. The first element of a list has a name such as
    `resourceIds.<label>[0]`. A field may be a secret, so the repr does not show the fields.
    """

    fields: Mapping[str, Any] = field(repr=False)
    source: str = COMMAND_LINE
    line: int | None = None
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_standard_input(self) -> bool:
        return self.source == text.name(text.STDIN)

    def line_of(self, key: str | None) -> int | None:
        return self.lines.get(key or "", self.line)

    def place(self, key: str | None = None) -> str:
        return _place(self.source, self.line_of(key))

    def error(self, problem: str, key: str | None = None, *, hint: str | None = None) -> FileError:
        """Return the error about a key, or about the whole document."""
        return FileError(self.source, self.line_of(key), problem, hint=hint)

    def check_keys(self, keys: Collection[str]) -> None:
        """Raise UsageError for a key that is not among `keys`."""
        for key in self.fields:
            if key not in keys:
                hint = did_you_mean(key, keys) or f"keys are {', '.join(keys)}"
                raise self.error(f"unknown key '{key}'", key, hint=hint)

    def needed(self, key: str) -> str:
        """Return the text of a required key. Raises UsageError if the key is missing."""
        if key not in self.fields:
            raise self.error(f"the {key} is missing")
        return self.text(key) or ""

    def text(self, key: str) -> str | None:
        """Return the text of a key; None if the key is missing.

        Raises UsageError if the value is blank, or not text.
        """
        value = self.fields.get(key)
        if key not in self.fields:
            return None
        if value is None or (isinstance(value, str) and not value.strip()):
            raise self.error(f"{key} has no value", key)
        if not isinstance(value, str):
            raise self.error(f"{key} is not text", key)
        return value

    def below(self, key: str, *, hint: str | None = None) -> YamlDocument:
        """Return the mapping of a key as a separate document, which is empty if the key has no value."""
        value = self.fields.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise self.error(f"{key} is not a mapping", key, hint=hint)
        prefix = f"{key}."
        lines = {name.removeprefix(prefix): line for name, line in self.lines.items() if name.startswith(prefix)}
        return YamlDocument(value or {}, self.source, self.line_of(key), lines)

    def one_of(self, key: str, words: Sequence[str]) -> str | None:
        """Return the value of a key, which must be one of `words`; None if the key is missing."""
        word = self.text(key)
        if word is not None and word not in words:
            raise self.error(f"{key} '{word}' is not one of {', '.join(words)}", key, hint=did_you_mean(word, words))
        return word


def read(paths: Iterable[Path], kind: str, var: Sequence[str] = ()) -> list[YamlDocument]:
    """Read the domains, roles or jobs in files, and fill in their variables. `-` is standard input.

    `kind` is the word for a domain, role or job in messages. Raises UsageError for a mistake in a file, or if a name
    appears twice. The error names the file, and the line and the key if they are known.
    """
    documents: list[YamlDocument] = []
    for path in paths:
        source = text.name(path)
        here = parse(text.read(path, f"{kind}s"), source, kind)
        if not here:
            raise FileError(source, None, f"it contains no {kind}", hint=f"a {kind} is a mapping with a name")
        documents += here
    documents = fill(documents, var)
    unique(documents, kind)
    return documents


def parse(written: str, source: str, kind: str) -> list[YamlDocument]:
    """Return the domains, roles or jobs in a YAML text. `source` is the name of the text in messages."""
    try:
        return [_document(tree, source, kind) for tree in yaml_text.items(written)]
    except YamlError as error:
        raise FileError(source, error.line, error.problem, hint=error.hint) from None


def _document(tree: Tree, source: str, kind: str) -> YamlDocument:
    if not isinstance(tree.value, Mapping):
        raise FileError(source, tree.line, f"a {kind} must be a mapping of fields")
    for key in tree.repeated:
        raise FileError(source, key.line, key.problem)
    return YamlDocument(tree.value, source, tree.line, tree.lines)


def unique(documents: Iterable[YamlDocument], kind: str) -> None:
    """Raise UsageError if two documents have the same name."""
    seen: dict[str, YamlDocument] = {}
    for document in documents:
        name = document.fields.get("name")
        if isinstance(name, str) and seen.setdefault(name, document) is not document:
            raise document.error(f"{kind} '{name}' appears twice, first in {seen[name].place('name')}", "name")


def fill(documents: Sequence[YamlDocument], assignments: Sequence[str]) -> list[YamlDocument]:
    """Replace each `{{name}}` in the texts of documents with the value of the variable.

    In the field `query`, the value is inserted as a quoted literal. In other fields, it is inserted without quotes.
    Raises UsageError if a variable has no value, or if a variable that has a value is in no text.
    """
    values = variables(assignments)
    used: set[str] = set()

    def walk(document: YamlDocument, value: Any, key: str) -> Any:
        if isinstance(value, Mapping):
            return {name: walk(document, inner, f"{key}.{name}".lstrip(".")) for name, inner in value.items()}
        if isinstance(value, list):
            return [walk(document, item, f"{key}[{index}]") for index, item in enumerate(value)]
        if not isinstance(value, str):
            return value
        try:
            result, names = filled(value, values, quoted=key == "query")
        except UsageError as error:
            raise document.error(f"{key}: {error.message}", key, hint=error.hint) from None
        used.update(names)
        return result if names else value

    done = [
        YamlDocument(walk(document, document.fields, ""), document.source, document.line, document.lines)
        for document in documents
    ]
    if unused := sorted(values.keys() - used):
        raise UsageError(f"no file uses {{{{{unused[0]}}}}}, which --var gives")
    return done


def to_yaml(bodies: Sequence[Mapping[str, Any]]) -> str:
    """Return YAML that `read` can read. A single domain, role or job is a mapping, and several are a list.

    The text has no newline at its end.
    """
    whole = bodies[0] if len(bodies) == 1 else list(bodies)
    return yaml_text.yaml_of(whole, default_flow_style=None, width=100).rstrip("\n")
