"""The steps of `role apply`, which compares roles in files with the roles of the service."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from svcctl.api import own_service, roles
from svcctl.api.models import EVERYTHING, Role, is_built_in
from svcctl.api.refusals import no_role
from svcctl.cli.apply.plan import Action, FieldDifference, PlanStep, plan
from svcctl.cli.apply.steps import Noun
from svcctl.cli.inputs.role_files import WrittenRole, require_available, require_sound
from svcctl.errors import NotFound, ServiceError

if TYPE_CHECKING:
    from svcctl.api.client import Client

UNREADABLE = Role()
"""A placeholder for a role that the service cannot show. The role may or may not exist."""
NOT_CHECKED = "the names of policies and applications (rule 7), which this service does not list"

RoleStep = PlanStep[WrittenRole, Role]


class Roles(Noun):
    """The roles of a domain."""

    kind = "role"

    def __init__(self, client: Client, domain: str) -> None:
        self.client = client
        self.domain = domain
        self.where = f" in {domain}"

    def steps(self, written: Sequence[WrittenRole], *, prune: bool) -> list[RoleStep]:
        """Return the steps that make the domain's roles match the files, by creating or changing roles.

        With `prune`, the steps also remove all custom roles that are in no file.
        """
        desired = {str(entry.role.name): entry for entry in written}
        actual = {name: existing for name in desired if (existing := self._found(name)) is not None}
        if prune:
            others = {str(role.name): role for role in self.client.roles(self.domain)}
            actual |= {name: role for name, role in others.items() if name not in actual}
        return plan(desired, actual, differ, lambda role: not is_built_in(str(role.name)))

    def _found(self, name: str) -> Role | None:
        readable = True
        try:
            return self.client.role(self.domain, name)
        except ServiceError as error:
            if not roles.may_lack(error):
                raise
            readable = roles.reads_roles(self.client, self.domain)
        return None if readable else UNREADABLE

    @cached_property
    def available(self) -> Mapping[str, Collection[str]] | None:
        """Return the names that roles of the domain can grant; None if the service does not list them."""
        return own_service.available(self.client, self.domain)

    def check(self, step: RoleStep) -> str | None:
        wanted = step.wanted
        if wanted is None:
            return None
        if step.action is Action.CREATE:
            require_sound(wanted)
        if not wanted.granted_names:
            return None
        if self.available is None:
            return NOT_CHECKED
        require_available(wanted, self.domain, self.available)
        return None

    def warnings(self, steps: Sequence[RoleStep]) -> Iterable[str]:
        return [text for step in steps if step.wanted for text in grants(step.wanted, self.domain, step.action)]

    def make(self, step: RoleStep) -> str:
        """Carry out a step. A role that the service cannot show is updated, or created if it does not exist."""
        client, domain, name = self.client, self.domain, step.name
        if step.wanted is None:
            client.delete_role(domain, name)
            return "removed"
        wanted = step.wanted.role
        if step.action is Action.CHANGE:
            try:
                client.update_role(domain, name, replace(wanted, name=None))
                return "updated"
            except NotFound as error:
                if step.existing is not UNREADABLE or not no_role(error):
                    raise
                require_sound(step.wanted)
        client.create_role(domain, wanted)
        return "created"


def differ(written: WrittenRole, existing: Role | None) -> list[FieldDifference]:
    wanted = replace(written.role, name=None)
    if existing is None and not any(key in wanted.body() for key in roles.GRANTS):  # rule 1: a name grants everything
        everything = (EVERYTHING,)
        wanted = replace(wanted, policies=everything, applications=everything, resource_ids={EVERYTHING: ()})
    changed = differences(existing or Role(), wanted)
    if existing is UNREADABLE:  # the role may have to be created
        changed = changed or [FieldDifference("name", None, written.role.name)]
        return [replace(difference, before="unknown") for difference in changed]
    return changed


def differences(current: Role, wanted: Role) -> list[FieldDifference]:
    """Return the fields in which the existing role `current` differs from `wanted`.

    Fields that are None in `wanted` are not compared, because an update does not change them.
    """
    before, said, shown = roles.comparable(current), roles.in_words(current), roles.in_words(wanted)
    return [
        FieldDifference(key, said.get(key), shown[key])
        for key, after in roles.comparable(wanted).items()
        if before.get(key) != after and (before.get(key) or after)
    ]


def grants(written: WrittenRole, domain: str, action: Action) -> list[str]:
    """Return a list with a warning if a role grants all policies, applications or resources; otherwise, return []."""
    granted = written.grants_all(update=action is not Action.CREATE)
    return [f"{written.label} grants {granted} of {domain}, including future ones."] if granted else []
