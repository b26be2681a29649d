"""A role given by options, or by a file instead of them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from svcctl.api.models import ALL, Role
from svcctl.cli.inputs import role_files
from svcctl.cli.inputs.role_files import WrittenRole
from svcctl.errors import UsageError


def read(
    file: Path | None,
    *,
    policies: Sequence[str] | None,
    applications: Sequence[str] | None,
    resource_ids: Sequence[str] | None,
    missing: str = "no role given",
    **others: str | None,
) -> list[WrittenRole]:
    """The roles in the file, or the one that the options describe; `others` are fields that take one text.

    `missing` is the error when neither is given.
    """
    given: dict[str, Any] = {
        "name": others.get("name"),
        "description": others.get("description"),
        "policies": _names(policies),
        "applications": _names(applications),
        "resourceIds": _resources(resource_ids),
        "finderName": others.get("finder_name"),
        "defaultApplicationName": others.get("default_application_name"),
    }
    fields = {key: value for key, value in given.items() if value is not None}
    if file is not None and fields:
        raise UsageError("a role is given by --file and by options", hint="change the file, or leave out --file")
    if file is not None:
        return role_files.read_roles(file)
    if not fields:
        raise UsageError(missing, hint="describe it with options or with --file")
    return [WrittenRole(fields)]


def change(written: WrittenRole, named: str | None, count: int) -> tuple[str, Role]:
    """The name of the role that an update changes, and the changes; `named` is the name on the command line.

    `count` is the number of roles that are written in the same place.
    """
    wanted = written.role
    if named is not None and count > 1:
        raise UsageError(
            f"{written.source} holds {count} roles", hint=f"leave out '{named}': each is updated by its name"
        )
    target = named or wanted.name
    if target is None or (named is None and written.source == role_files.COMMAND_LINE):
        raise UsageError(f"{written.place()}: no role is named", hint="put its name after the domain")
    return target, replace(wanted, name=None) if wanted.name == target else wanted


def _names(given: Sequence[str] | None) -> str | list[str] | None:
    """The names in the values of an option, separated by commas; a name that holds one is put in double quotes."""
    if given is None:
        return None
    names = [name for text in given if text for name in next(csv.reader([text], skipinitialspace=True), [])]
    return ALL if names == [ALL] else names


def _resources(given: Sequence[str] | None) -> dict[str, list[int]] | None:
    if given is None:
        return None
    if list(given) == [ALL]:
        return {ALL: []}
    ids: dict[str, list[int]] = {}
    for text in given if list(given) != [""] else []:
        label, equals, numbers = text.rpartition("=")
        words = [word.strip() for word in numbers.split(",") if word.strip()]
        if not equals or not all(word.removeprefix("-").isdecimal() and word.isascii() for word in words):
            raise UsageError(f"--resource-ids '{text}' is not of the form LABEL=1,2,3")
        ids.setdefault(label, []).extend(map(int, words))
    return ids
