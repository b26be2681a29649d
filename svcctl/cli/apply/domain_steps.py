"""The steps of `domain apply`, which compares a reseller's domains in files with the domains of the service."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from svcctl.api.models import Domain
from svcctl.api.own_service import check_domain
from svcctl.cli.apply.plan import Action, FieldDifference, PlanStep, plan
from svcctl.cli.apply.steps import Noun
from svcctl.cli.inputs.domain_files import DISABLED, KEYS, WrittenDomain, exported
from svcctl.errors import UsageError
from svcctl.words import counted, json_text

if TYPE_CHECKING:
    from svcctl.api.client import Client

NOT_CHECKED = "the names, plans, times and volumes of new domains, which only svcctl's own service checks beforehand"

DomainStep = PlanStep[WrittenDomain, Domain]


class Domains(Noun):
    """The domains of a reseller."""

    kind = "domain"

    def __init__(self, client: Client) -> None:
        self.client = client

    def steps(self, written: Iterable[WrittenDomain], *, prune: int | None) -> list[DomainStep]:
        """Return the steps that make the reseller's domains match the files, by creating or changing domains.

        If `prune` is not None, the steps also remove all domains that are in no file. Raises UsageError if the steps
        would remove more than `prune` domains, or if two domains in the files have the same name.
        """
        desired: dict[str, WrittenDomain] = {}
        for entry in written:
            first = desired.setdefault(_short(entry.name), entry)
            if first is not entry:
                raise entry.document.error(
                    f"domain '{entry.name}' is the same as '{first.name}' in {first.document.place('name')}", "name"
                )
        actual = {_short(domain.name): domain for domain in self.client.domains()}
        steps = plan(desired, actual, differ, lambda existing: prune is not None)
        _check_number(steps, prune)
        return steps

    def check(self, step: DomainStep) -> str | None:
        wanted, existing = step.wanted, step.existing
        if wanted is None:
            return None
        if existing is not None:
            _check_unchanged(step, wanted, existing)
            return None
        checked = check_domain(self.client, Domain(wanted.name, wanted.plan, time=wanted.time, volume=wanted.volume))
        if checked is None:
            return NOT_CHECKED
        if checked.key is not None:
            raise wanted.document.error(checked.message, checked.key, hint=checked.hint)
        return None

    def warnings(self, steps: Sequence[DomainStep]) -> Iterable[str]:
        if lost := removed(steps):
            yield f"The users of {', '.join(lost)} are removed, completely when they have no other domain."

    def make(self, step: DomainStep) -> str:
        wanted, existing = step.wanted, step.existing
        if wanted is None:
            assert existing is not None
            self.client.delete_domain(existing.name)
            return "removed"
        if existing is None:
            existing = self.client.create_domain(wanted.name, wanted.plan, time=wanted.time, volume=wanted.volume)
            if wanted.state == DISABLED:
                self.client.disable_domain(existing.name)
            return "created"
        if wanted.state == DISABLED:
            self.client.disable_domain(existing.name)
        else:
            self.client.enable_domain(existing.name)
        return str(wanted.state)


def differ(wanted: WrittenDomain, existing: Domain | None) -> list[FieldDifference]:
    """Return the differences between a domain in a file and the existing domain.

    `existing` is None for a new domain.
    """
    before = {} if existing is None else exported(existing)
    after = {key: value for key in KEYS[1:] if (value := getattr(wanted, key)) is not None}
    changed = [key for key, value in after.items() if value != before.get(key)]
    return [
        FieldDifference(key, json_text(before[key]) if key in before else None, json_text(after[key]))
        for key in changed
    ]


def _check_unchanged(step: DomainStep, wanted: WrittenDomain, existing: Domain) -> None:
    """Raise UsageError if a step changes a field other than the state, because no service can change such a field."""
    for key, before, after in (
        (difference.key, difference.before, difference.after) for difference in step.differences
    ):
        if key != "state":
            actual = f"no {key}" if before is None else f"{key} {before}"
            raise wanted.document.error(
                f"domain {existing.name} has {actual}, which cannot be changed to {after}",
                key,
                hint=f"leave out {key}" if before is None else f"write {key}: {before}",
            )


def removed(steps: Sequence[DomainStep]) -> list[str]:
    """Return the names of the domains that the steps remove."""
    return [step.existing.name for step in steps if step.existing and step.action is Action.REMOVE]


def _check_number(steps: Sequence[DomainStep], most: int | None) -> None:
    """Raise UsageError if the steps remove more domains than `most`, because users are removed with their domain."""
    names = removed(steps)
    if most is not None and len(names) > most:
        raise UsageError(
            f"{counted(len(names), 'domain is', 'domains are')} not in any file, more than the allowed {most}: "
            f"{', '.join(names)}",
            hint=f"to remove them with their users: --prune-domains {len(names)}",
        )


def _short(name: str) -> str:
    """Return a domain's name without the reseller."""
    return name.partition("@")[0]
