"""YAML in which every scalar (single value) is a text, exactly as written.

For example, `0123`, `no`, `1:30` and `2024-01-31` are texts.

Two kinds of scalars have a special meaning: null (empty, `~` or `null`), and the merge key `<<`. Tags such as `!!int`
are refused. A field that must be a number is converted later, with `integer`, `number` or `json_value`. Errors never
contain a value, because a value may be a secret.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import yaml

MAX_REPEATED_VALUES = 100_000
"""The maximum number of values that the aliases of a YAML text may repeat.

Without this limit, a few lines of nested aliases could repeat billions of values.
"""
_Node = Any
"""A node of PyYAML. Its `id` says whether the node is a scalar, a sequence or a mapping."""
_NULL, _MERGE, *_STRUCTURE = (f"tag:yaml.org,2002:{name}" for name in ("null", "merge", "str", "map", "seq"))
_OTHERS_TYPE = r"[yYnN]|0o[0-7]+|[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+"
"""A pattern for texts that other programs would not read as text, such as y, 0o17 and 1e3.

PyYAML does not quote these texts by itself.
"""
_RARE_LINE_ENDS = "[\r\x85\u2028\u2029\ufeff]"
_TOO_DEEP = "not YAML: it is nested too deeply, or has an alias of itself"
_TAGGED = "a value begins with '!', which YAML takes for a tag"
_QUOTED = "put the value in quotes"


class YamlError(Exception):
    """A YAML text that cannot be read.

    `problem` describes the mistake, and `line` is the line of the mistake; None if the line is unknown.
    """

    def __init__(self, line: int | None, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.line = line
        self.problem = problem
        self.hint = hint


class PlainText(str):
    """A scalar without quotes, which a field may read as a number or a text."""

    __slots__ = ()


class RepeatedKey(NamedTuple):
    """A key that occurs twice in a mapping: the path to the key, and the line numbers of both occurrences."""

    path: Sequence[str]
    line: int
    first: int

    @property
    def problem(self) -> str:
        return f"key '{'.'.join(self.path)}' appears twice, first in line {self.first}"


@dataclass(frozen=True, slots=True)
class Tree:
    """A decoded document: its value (text, None, list or mapping), and the line numbers of its keys and list elements.

    In `lines`, the line numbers are stored by paths. The path of a key is written as `a.b`, and the path of a list
    element as `a.b[2]`.
    """

    value: Any = field(repr=False)
    line: int
    lines: Mapping[str, int]
    repeated: Sequence[RepeatedKey]


def documents(text: str) -> list[Tree]:
    """Return the documents of a YAML text, except empty documents. Raises YamlError if the text is not YAML."""
    return [_Walk().tree(node) for node in _nodes(text)]


def items(text: str) -> list[Tree]:
    """Return the items of a YAML text. If a document is a list, its elements are items. Any other document is one item.

    Raises YamlError if the text is not YAML.
    """
    lists = (node.value if node.id == "sequence" else [node] for node in _nodes(text))
    return [_Walk().tree(item) for nodes in lists for item in nodes]


def yaml_of(content: Any, **options: Any) -> str:
    """Return a value as YAML. Texts that other programs would read as another type are quoted."""
    import yaml

    return str(yaml.dump(content, Dumper=_dumper(), allow_unicode=True, sort_keys=False, **options))


# Texts as values of fields

_INTEGER = r"(?a)-?(?:0|[1-9]\d*(?:_\d+)*)"
_JSON_NUMBER = r"(?a)-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?"
NUMBERS = "write a number as 14 or 1.5: programs read 014, 0x1F and 1:30 in different ways"
"""The hint for a text that is not a number."""
MAX_NUMBER_CHARS = 1000
"""The maximum number of characters of a number."""


def integer(text: str) -> int | None:
    """Convert a text to a whole number. Returns None for any other text, and for an ambiguous number such as 014."""
    return int(text) if _spells(text, _INTEGER) else None


def number(text: str) -> float | None:
    """Convert a text to a number. The text may have the form that `integer` accepts, or the form of a JSON number.

    Returns None for any other text.
    """
    if (whole := integer(text)) is not None:
        return whole
    return float(text) if _spells(text, _JSON_NUMBER) else None


def boolean(text: str) -> bool | None:
    """Convert a text to a boolean: `true`, `yes` and `on` to True; `false`, `no` and `off` to False. Case is ignored.

    Returns None for any other text.
    """
    return {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}.get(text.casefold())


def json_value(text: str) -> str | float | bool:
    """Convert a text that is a number or a boolean in JSON. Any other text is returned unchanged."""
    if text in ("true", "false") or _spells(text, _JSON_NUMBER):
        value: float | bool = json.loads(text)
        return value if math.isfinite(value) else str(text)
    return str(text)


def _spells(text: str, pattern: str) -> bool:
    return len(text) <= MAX_NUMBER_CHARS and re.fullmatch(pattern, text) is not None


# Reading and writing


@cache
def _loader() -> Any:
    """Return the class that reads a YAML text as nodes. PyYAML is imported only when the class is needed."""
    import yaml

    class Loader(
        yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser, yaml.composer.Composer, yaml.resolver.BaseResolver
    ):
        """A loader that knows only the tags str, map, seq, null and merge."""

        def __init__(self, text: str) -> None:
            yaml.reader.Reader.__init__(self, text)
            yaml.scanner.Scanner.__init__(self)
            yaml.parser.Parser.__init__(self)
            yaml.composer.Composer.__init__(self)
            yaml.resolver.BaseResolver.__init__(self)

        def compose_node(self, parent: _Node, index: int) -> _Node:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            explicit = getattr(event, "tag", None)
            if explicit not in (None, *_STRUCTURE):
                raise YamlError(event.start_mark.line + 1, _TAGGED, _QUOTED)
            node: _Node = super().compose_node(parent, index)
            if explicit is not None and isinstance(event, yaml.ScalarEvent) and node is not None:
                node.style = node.style or "'"  # `!!str 1` is a text, like "1"
            return node

    Loader.add_implicit_resolver(_NULL, re.compile(r"(?:~|null|)\Z"), ["~", "n", ""])
    Loader.add_implicit_resolver(_MERGE, re.compile(r"<<\Z"), ["<"])
    return Loader


@cache
def _dumper() -> Any:
    import yaml

    class Dumper(yaml.SafeDumper):
        """A dumper that writes a text with several lines as a literal block."""

    def represent(dumper: Any, text: str) -> _Node:
        style = "|" if "\n" in text else "'" if re.fullmatch(_OTHERS_TYPE, text) else None
        # Without double quotes, PyYAML would write these line ends in a way that is read as blanks.
        if re.search(_RARE_LINE_ENDS, text):
            style = '"'
        node: _Node = dumper.represent_scalar(_STRUCTURE[0], str(text), style=style)
        return node

    Dumper.add_representer(str, represent)
    Dumper.add_representer(PlainText, represent)
    return Dumper


def _nodes(text: str) -> Iterator[_Node]:
    """Yield the documents of a text as nodes. Documents with the value null are left out."""
    import yaml

    loader = None
    try:
        loader = _loader()(text)
        while loader.check_node():
            node = loader.get_node()
            if node is not None and node.tag != _NULL:
                yield node
    except yaml.YAMLError as error:
        raise _not_yaml(error, text) from None
    except RecursionError:
        raise YamlError(None, _TOO_DEEP) from None
    except (ValueError, OverflowError):
        raise YamlError(loader.line + 1 if loader else None, "not YAML: an escape is not a character") from None
    finally:
        if loader is not None:
            loader.dispose()


class _Walk:
    """A decoder of nodes. It also collects the line numbers of the keys, and the repeated keys."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self.repeated: dict[Sequence[str], RepeatedKey] = {}
        self.seen: set[int] = set()
        self.count = 0

    def tree(self, node: _Node) -> Tree:
        try:
            return Tree(self.value(node, ()), _line(node), self.lines, list(self.repeated.values()))
        except RecursionError:
            raise YamlError(None, _TOO_DEEP) from None

    def value(self, node: _Node, path: tuple[str, ...]) -> Any:
        if node.id == "mapping":
            decoded = {}
            for key, (line, inner) in self.pairs(node, path).items():
                self.lines[".".join((*path, key))] = line
                decoded[key] = self.value(inner, (*path, key))
            return decoded
        if node.id == "sequence":
            self.count_repeated(node)
            return [self.element(item, path, index) for index, item in enumerate(node.value)]
        if node.tag == _NULL:
            return None
        return PlainText(_text(node)) if node.style is None else _text(node)

    def count_repeated(self, node: _Node) -> None:
        """Count the values that aliases repeat. Raises YamlError if there are more than MAX_REPEATED_VALUES."""
        if id(node) not in self.seen:
            self.seen.add(id(node))
            return
        self.count += 1 + len(node.value)
        if self.count > MAX_REPEATED_VALUES:
            raise YamlError(None, f"not YAML: its aliases repeat more than {MAX_REPEATED_VALUES:,} values")

    def element(self, node: _Node, path: tuple[str, ...], index: int) -> Any:
        place = (*path[:-1], f"{path[-1] if path else ''}[{index}]")
        self.lines[".".join(place)] = _line(node)
        return self.value(node, place)

    def pairs(self, node: _Node, path: tuple[str, ...]) -> dict[str, tuple[int, _Node]]:
        """Return the keys of a mapping, each with its line number and value.

        Keys from other mappings (`<<`) come first, and the mapping's own keys follow.
        """
        self.count_repeated(node)
        own: dict[str, tuple[int, _Node]] = {}
        merged: dict[str, tuple[int, _Node]] = {}
        for key, value in node.value:
            if key.id != "scalar" or (key.tag == _NULL and not key.value):
                raise YamlError(_line(key), "a key must be text")
            name = _text(key)
            if name in own:
                repeated = RepeatedKey((*path, name), _line(key), first=own[name][0])
                self.repeated.setdefault(repeated.path, repeated)
            else:
                own[name] = (_line(key), value)
            if key.tag == _MERGE:
                merged = self.merged(value, path)
        if any(key.tag == _MERGE for key, _ in node.value):
            del own["<<"]
        return merged | own

    def merged(self, node: _Node, path: tuple[str, ...]) -> dict[str, tuple[int, _Node]]:
        """Return the keys of the mappings that the merge key `<<` names.

        If several of these mappings have the same key, the value in the first mapping is used.
        """
        keys: dict[str, tuple[int, _Node]] = {}
        for base in node.value if node.id == "sequence" else [node]:
            if base.id != "mapping":
                raise YamlError(_line(base), "<< must name a mapping, or a list of mappings")
            keys = self.pairs(base, path) | keys
        return keys


def _line(node: _Node) -> int:
    return int(node.start_mark.line) + 1


def _text(node: _Node) -> str:
    """Return the text of a scalar.

    PyYAML decodes a surrogate pair in JSON as two characters, which are combined here.
    """
    pairs: bytes = node.value.encode("utf-16", "surrogatepass")
    return pairs.decode("utf-16", "surrogatepass")


def _not_yaml(error: yaml.YAMLError, text: str) -> YamlError:
    import yaml

    if isinstance(error, yaml.reader.ReaderError):
        position = text.count("\n", 0, error.position) + 1
        return YamlError(position, f"not YAML: character U+{error.character:04X} is not allowed")
    mark: Any = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = mark.line + 1 if mark else None
    column = f" (column {mark.column + 1})" if mark else ""
    problem = getattr(error, "problem", None) or "it cannot be read"
    context = getattr(error, "context", None) or ""
    if context.endswith("a tag") or problem.startswith("found undefined tag"):
        return YamlError(line, _TAGGED, _QUOTED)
    if problem.startswith("found undefined alias"):
        problem = "found an alias without its anchor"
    elif "alias" not in context:
        hint = "indent with blanks, not with tabs" if "'\\t'" in problem else _QUOTED
        starts = problem.startswith("found character")
        return YamlError(line, f"not YAML: {problem}{column}", hint if starts else None)
    return YamlError(line, f"not YAML: {problem}{column}", "write '*' in quotes: YAML gives a bare * another meaning")
