"""Roles from files or from the options of a command, which are checked against the rules for roles."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from svcctl.api.models import EVERYTHING, Role
from svcctl.api.roles import RoleFinding, grants_all, lint
from svcctl.cli.completion.words import FILES, Completes
from svcctl.cli.inputs import text, yaml_files
from svcctl.cli.inputs.yaml_files import COMMAND_LINE, FileError, YamlDocument
from svcctl.errors import UsageError
from svcctl.io.yaml_text import integer
from svcctl.words import choices, did_you_mean


@dataclass(frozen=True, slots=True)
class Located:
    """A mistake in a role: the file, the line and the role, the violated rule for roles, and the message."""

    file: str
    line: int | None
    role: Any
    level: str
    rule: int | None
    message: str


@dataclass(frozen=True, slots=True)
class WrittenRole:
    """A role from a file or from options."""

    document: YamlDocument

    @property
    def fields(self) -> Mapping[str, Any]:
        return self.document.fields

    @property
    def source(self) -> str:
        return self.document.source

    @property
    def role(self) -> Role:
        return Role.from_json(self.fields)

    @property
    def label(self) -> str:
        """The name that messages use for the role."""
        name = self.fields.get("name")
        return f"role '{name}'" if isinstance(name, str) else "the role"

    @property
    def granted_names(self) -> list[tuple[str, str]]:
        """The names of the granted policies and applications, each in a pair with its field. `*` is left out."""
        named = (("policies", self.role.policies), ("applications", self.role.applications))
        return [(key, name) for key, names in named for name in names or () if name != EVERYTHING]

    def lint(self, *, update: bool = False) -> list[RoleFinding]:
        return lint(self.fields, update=update)

    def findings(self) -> list[Located]:
        """The violations of the rules for roles, each with its place in the file."""
        name, line_of = self.fields.get("name"), self.document.line_of
        return [
            Located(self.source, line_of(finding.key), name, finding.level, finding.rule, finding.message)
            for finding in self.lint()
        ]

    def grants_all(self, *, update: bool = False) -> str | None:
        """Describe the unlimited grants of the role in words. Returns None if the role has no unlimited grants."""
        words = [f"all {word}" for word in grants_all(self.fields, update=update)]
        return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or None


def require_sound(role: WrittenRole, *, update: bool = False) -> WrittenRole:
    """Return the role if it follows the rules.

    Otherwise raises UsageError, with the first mistake and the number of other mistakes.
    """
    errors = [finding for finding in role.lint(update=update) if finding.level == "error"]
    if not errors:
        return role
    first, more = errors[0], len(errors) - 1
    rule = f" (rule {first.rule})" if first.rule is not None else ""
    see = f"; see them with 'svcctl role lint {role.source}'" if role.source != COMMAND_LINE else ""
    raise role.document.error(f"{first.message}{rule}", first.key, hint=f"{more} more{see}" if more else None)


def applied(role: WrittenRole) -> WrittenRole:
    """Return the role. Raises UsageError if the role has no name, or breaks a rule for updates."""
    role.document.needed("name")
    return require_sound(role, update=True)


def require_available(role: WrittenRole, domain: str, available: Mapping[str, Collection[str]]) -> None:
    """Raise UsageError for the first policy or application that roles of the domain cannot grant (rule 7 for roles)."""
    for key, name in role.granted_names:
        if name not in available[key]:
            there = choices(sorted(available[key])) or "none"
            raise role.document.error(
                f"{key}: '{name}' does not exist or is not available in {domain} (rule 7)",
                key,
                hint=did_you_mean(name, available[key]) or f"available are {there}",
            )


# Files


@dataclass(frozen=True, slots=True)
class Linted:
    """The mistakes in a file, and the number of roles in the file. A file that cannot be read counts as a mistake."""

    source: str
    count: int
    findings: Sequence[Located]

    @property
    def errors(self) -> int:
        return sum(finding.level == "error" for finding in self.findings)


def linted(path: Path) -> Linted:
    """Check the roles in a file, and return the mistakes."""
    source = text.name(path)
    try:
        roles = read_roles([path])
    except UsageError as error:
        line, problem = (error.line, error.problem) if isinstance(error, FileError) else (None, error.message)
        return Linted(source, 0, [Located(source, line, None, "error", None, problem)])
    return Linted(source, len(roles), [finding for role in roles for finding in role.findings()])


def read_roles(paths: Iterable[Path], var: Sequence[str] = ()) -> list[WrittenRole]:
    """Return the roles in files. Raises UsageError for a mistake in a file.

    The error names the file, and the line and the key if they are known.
    """
    return list(map(written, yaml_files.read(paths, "role", var)))


def written(document: YamlDocument) -> WrittenRole:
    """Return the role in a document.

    In resourceIds, the text of a whole number becomes the number. The rules for roles report all other texts.
    """
    resources = document.fields.get("resourceIds")
    if not isinstance(resources, Mapping):
        return WrittenRole(document)
    numbers = {label: list(map(_number, ids)) if isinstance(ids, list) else ids for label, ids in resources.items()}
    return WrittenRole(replace(document, fields={**document.fields, "resourceIds": numbers}))


def _number(value: Any) -> Any:
    """Convert the text of a whole number to the number. Any other value is returned unchanged."""
    whole = integer(value) if isinstance(value, str) else None
    return value if whole is None else whole


# Options


@dataclass(frozen=True, kw_only=True)
class RoleOptions:
    """The options that describe a role, or name a file with roles."""

    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the role; with 'update', its new name.")
    ] = None
    description: Annotated[str | None, typer.Option("--description", metavar="TEXT", help="What the role is for.")] = (
        None
    )
    policies: Annotated[
        list[str] | None,
        typer.Option("--policies", metavar="NAME[,NAME]", help="Policy names; '*' for all, '' for none."),
    ] = None
    applications: Annotated[
        list[str] | None,
        typer.Option("--applications", metavar="NAME[,NAME]", help="Application names; '*' for all, '' for none."),
    ] = None
    resource_ids: Annotated[
        list[str] | None,
        typer.Option(
            "--resource-ids",
            metavar="LABEL=N,N",
            help="Resource IDs; repeat for more; '*' for all, '' for none. The service returns the label as 'ids'.",
        ),
    ] = None
    finder_name: Annotated[str | None, typer.Option("--finder-name", metavar="NAME", help="Default finder.")] = None
    default_application_name: Annotated[
        str | None,
        typer.Option(
            "--default-application-name", metavar="NAME", help="Default application; '' removes it on update."
        ),
    ] = None
    file: Annotated[
        Path | None,
        typer.Option("--file", "-F", metavar="FILE", help="Roles in YAML (see 'svcctl role lint --help')."),
        Completes(FILES),
    ] = None

    def read(self, missing: str) -> list[WrittenRole]:
        """Return the roles in the file, or the role that the options describe.

        Raises UsageError with the message `missing` if the user has given none of the options.
        """
        values: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "policies": _names(self.policies),
            "applications": _names(self.applications),
            "resourceIds": _resources(self.resource_ids),
            "finderName": self.finder_name,
            "defaultApplicationName": self.default_application_name,
        }
        fields = {key: value for key, value in values.items() if value is not None}
        if self.file is not None and fields:
            raise UsageError("a role is given by --file and by options", hint="change the file, or leave out --file")
        if self.file is not None:
            return read_roles([self.file])
        if not fields:
            raise UsageError(missing, hint="describe it with options or with --file")
        return [WrittenRole(YamlDocument(fields))]


def change(written: WrittenRole, named: str | None, count: int) -> tuple[str, Role]:
    """Return the name of the role to update, and the changes to the role.

    `named` is the name on the command line. `count` is the number of roles in the same file.
    """
    changes = written.role
    if named is not None and count > 1:
        raise UsageError(
            f"{written.source} contains {count} roles", hint=f"leave out '{named}': each is updated by its name"
        )
    target = named or changes.name
    if target is None or (named is None and written.source == COMMAND_LINE):
        raise written.document.error("no role is named", hint="put its name after the domain")
    return target, replace(changes, name=None) if changes.name == target else changes


def _names(texts: Sequence[str] | None) -> str | list[str] | None:
    """Parse the names in the values of an option.

    The names are separated by commas. A name that contains a comma must be in double quotes.
    """
    if texts is None:
        return None
    names = [name for text in texts if text for name in next(csv.reader([text], skipinitialspace=True), [])]
    return EVERYTHING if names == [EVERYTHING] else names


def _resources(texts: Sequence[str] | None) -> dict[str, list[int]] | None:
    if texts is None:
        return None
    if list(texts) == [EVERYTHING]:
        return {EVERYTHING: []}
    ids: dict[str, list[int]] = {}
    for written in texts if list(texts) != [""] else []:
        label, equals, numbers = written.rpartition("=")
        words = [word.strip() for word in numbers.split(",") if word.strip()]
        if not equals or not all(word.removeprefix("-").isdecimal() and word.isascii() for word in words):
            raise UsageError(f"--resource-ids '{written}' is not of the form LABEL=1,2,3")
        ids.setdefault(label, []).extend(map(int, words))
    return ids
