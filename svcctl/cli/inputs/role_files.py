"""Role files: read roles from YAML, and report mistakes with their file and line.

A file holds one role, a list of them, a mapping with `roles:` and a list, or several of these as YAML documents. A role
is a mapping of the interface's fields:

    name: Night shift
    description: May look, and acknowledge alerts
    policies: [Search, Alerts]        # or '*', in quotes, for all
    applications: explorer            # one name, or a list
    resourceIds: {tables: [1, 2], lookups: [7]}
    finderName: default
    defaultApplicationName: explorer
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from svcctl.api.models import ALL, Role
from svcctl.api.roles import Finding, grants_all, lint
from svcctl.cli.inputs import text
from svcctl.errors import UsageError
from svcctl.words import did_you_mean

if TYPE_CHECKING:
    import yaml

COMMAND_LINE = "the options"
"""The source of a role that is given by options."""


@dataclass(frozen=True, slots=True)
class Located:
    """A finding of the rules, with the file, line and role that it is about."""

    file: str
    line: int | None
    role: Any
    level: str
    rule: int | None
    message: str


@dataclass(frozen=True, slots=True)
class WrittenRole:
    """A role as it is written: its decoded fields, and the line of each, including `resourceIds.<label>`."""

    fields: Mapping[str, Any]
    source: str = COMMAND_LINE
    line: int | None = None
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def role(self) -> Role:
        return Role.from_json(self.fields)

    @property
    def label(self) -> str:
        """The role as messages name it."""
        name = self.fields.get("name")
        return f"role '{name}'" if isinstance(name, str) else "the role"

    @property
    def granted_names(self) -> list[tuple[str, str]]:
        """The policies and applications that the role names, each with its field."""
        named = (("policies", self.role.policies), ("applications", self.role.applications))
        return [(key, name) for key, names in named for name in names or () if name != ALL]

    def place(self, key: str | None = None) -> str:
        """`role.yaml, line 3`, or the options."""
        line = self.lines.get(key or "", self.line)
        return self.source if line is None else f"{self.source}, line {line}"

    def lint(self, *, update: bool = False) -> list[Finding]:
        return lint(self.fields, update=update)

    def findings(self) -> list[Located]:
        """The findings of the rules, each with its place."""
        return [
            Located(
                self.source,
                self.lines.get(one.key or "", self.line),
                self.fields.get("name"),
                one.level,
                one.rule,
                one.message,
            )
            for one in self.lint()
        ]

    def grants_all(self, *, update: bool = False) -> str | None:
        """What the role grants without a limit, in words; None when it grants only what is listed."""
        words = [f"all {word}" for word in grants_all(self.fields, update=update)]
        return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or None


def require_sound(roles: Sequence[WrittenRole], *, update: bool = False) -> None:
    """UsageError with the first error that the rules find in these roles, and how many more there are."""
    errors = [(role, one) for role in roles for one in role.lint(update=update) if one.level == "error"]
    if not errors:
        return
    role, first = errors[0]
    rule = f" (rule {first.rule})" if first.rule is not None else ""
    more = f"{len(errors) - 1} more; " if len(errors) > 1 else ""
    see = f"see {'them' if more else 'it'} with 'svcctl role lint {role.source}'" if role.source != COMMAND_LINE else ""
    raise UsageError(f"{role.place(first.key)}: {first.message}{rule}", hint=(more + see).rstrip("; ") or None)


def require_available(roles: Sequence[WrittenRole], domain: str, available: Mapping[str, Collection[str]]) -> None:
    """UsageError with the first policy or application that roles of a domain cannot grant (rule 7)."""
    for role in roles:
        for key, name in role.granted_names:
            if name not in available[key]:
                there = ", ".join(sorted(available[key])) or "none"
                raise UsageError(
                    f"{role.place(key)}: {key}: '{name}' does not exist or is not available in {domain} (rule 7)",
                    hint=did_you_mean(name, available[key]) or f"available are {there}",
                )


# Files


class Misread(UsageError):
    """A role file that cannot be read, with the line of the mistake if it is known."""

    def __init__(
        self, source: str, line: int | None, problem: str, *, column: int | None = None, hint: str | None = None
    ):
        place = source if line is None else f"{source}, line {line}"
        place += "" if column is None else f", column {column}"
        super().__init__(f"{place}: {problem}", hint=hint)
        self.line = line
        self.problem = problem if column is None else f"column {column}: {problem}"


@dataclass(frozen=True, slots=True)
class Linted:
    """The findings in a file, and the number of its roles; a file that cannot be read is a finding too."""

    source: str
    count: int
    findings: Sequence[Located]

    @property
    def errors(self) -> int:
        return sum(one.level == "error" for one in self.findings)


def linted(path: Path) -> Linted:
    """The findings of the rules in a file."""
    source = text.name(path)
    try:
        roles = read_roles(path)
    except UsageError as error:
        line, problem = (error.line, error.problem) if isinstance(error, Misread) else (None, error.message)
        return Linted(source, 0, [Located(source, line, None, "error", None, problem)])
    return Linted(source, len(roles), [one for role in roles for one in role.findings()])


def read_roles(path: Path) -> list[WrittenRole]:
    """The roles in a file, or in standard input for `-`. UsageError names the file, and line and key if known."""
    source = text.name(path)
    roles = parse_roles(text.read(path, "roles"), source)
    if not roles:
        raise Misread(source, None, "it holds no role", hint="a role is a mapping with a name")
    return roles


def parse_roles(written: str, source: str) -> list[WrittenRole]:
    """The roles in a text."""
    import yaml

    loader = yaml.SafeLoader(written)
    try:
        roles = [role for node in _documents(loader) for role in _roles(loader, node, source)]
    except yaml.YAMLError as error:
        raise _not_yaml(error, source) from None
    except (RecursionError, ValueError) as error:
        raise Misread(source, None, f"not YAML: {error}") from None
    finally:
        loader.dispose()
    seen: dict[str, WrittenRole] = {}
    for role in roles:
        name = role.fields.get("name")
        if isinstance(name, str) and seen.setdefault(name, role) is not role:
            first = seen[name].place("name")
            raise Misread(source, role.lines.get("name"), f"role '{name}' appears twice, first in {first}")
    return roles


def written(roles: Sequence[Role]) -> str:
    """Roles as a file that `read_roles` reads: one role alone, several as a list."""
    import yaml

    bodies = [role.body() for role in roles]
    whole = bodies[0] if len(bodies) == 1 else bodies
    return str(yaml.safe_dump(whole, allow_unicode=True, sort_keys=False, default_flow_style=None, width=100))


def _documents(loader: yaml.SafeLoader) -> Iterator[yaml.Node]:
    while loader.check_node():
        node = loader.get_node()
        if node is not None and node.tag != "tag:yaml.org,2002:null":
            yield node


def _roles(loader: yaml.SafeLoader, node: yaml.Node, source: str) -> Iterator[WrittenRole]:
    import yaml

    if isinstance(node, yaml.MappingNode) and [key.value for key, _ in node.value] == ["roles"]:
        node = node.value[0][1]
    for item in node.value if isinstance(node, yaml.SequenceNode) else [node]:
        if not isinstance(item, yaml.MappingNode):
            raise Misread(source, _line(item), "a role must be a mapping of fields")
        lines: dict[str, int] = {}
        fields = _mapping(loader, item, source, "", lines)
        yield WrittenRole(fields, source, _line(item), lines)


def _mapping(
    loader: yaml.SafeLoader, node: yaml.MappingNode, source: str, prefix: str, lines: dict[str, int]
) -> dict[str, Any]:
    """A mapping with its keys as written, and their lines. UsageError when a key appears twice."""
    import yaml

    own = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
    loader.flatten_mapping(node)
    fields: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise Misread(source, _line(key), "a key must be text")
        name = f"{prefix}{key.value}"
        if own.count(key.value) > 1:
            raise Misread(source, _line(key), f"key '{name}' appears twice")
        lines[name] = _line(key)
        if name == "resourceIds" and isinstance(value, yaml.MappingNode):
            fields[key.value] = _mapping(loader, value, source, "resourceIds.", lines)
        else:
            fields[key.value] = loader.construct_object(value, deep=True)
    return fields


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _not_yaml(error: yaml.YAMLError, source: str) -> UsageError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or "it cannot be read"
    alias = "alias" in str(getattr(error, "context", ""))
    return Misread(
        source,
        mark.line + 1 if mark else None,
        f"not YAML: {problem}",
        column=mark.column + 1 if mark else None,
        hint="write '*' in quotes: YAML gives a bare * another meaning" if alias else None,
    )
