"""Domains of a reseller as files describe them, compared with those that are there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from svcctl.api.models import Domain, DomainStatus
from svcctl.cli.apply.plan import Action, Difference, Step, plan
from svcctl.cli.inputs.documents import Document
from svcctl.errors import UsageError
from svcctl.words import counted

if TYPE_CHECKING:
    from svcctl.api.client import Client

ENABLED, DISABLED = "enabled", "disabled"
KEYS = ("name", "plan", "time", "volume", "state")


@dataclass(frozen=True, slots=True)
class WrittenDomain:
    """A domain as a file describes it; what it does not name may be as it is."""

    document: Document
    name: str
    plan: str
    time: float | None
    volume: float | None
    state: str | None


DomainStep = Step[WrittenDomain, Domain]


def written(document: Document) -> WrittenDomain:
    """A domain of a file. UsageError names the key that is wrong."""
    document.check_keys(KEYS)
    return WrittenDomain(
        document,
        document.needed("name"),
        document.needed("plan"),
        _number(document, "time"),
        _number(document, "volume"),
        document.one_of("state", (ENABLED, DISABLED)),
    )


def _number(document: Document, key: str) -> float | None:
    value = document.fields.get(key)
    if key in document.fields and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise document.error(f"{key} is not a number", key)
    return value


def exported(domain: Domain) -> dict[str, Any]:
    """A domain as `written` reads it."""
    values = {
        "name": domain.name,
        "plan": domain.plan,
        "time": domain.time,
        "volume": domain.volume,
        "state": _state(domain),
    }
    return {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True)
class Domains:
    """The domains of a reseller; see `apply.Noun`."""

    client: Client
    kind: str = "domain"
    where: str = ""
    of: str = ""

    def steps(self, documents: Iterable[Document], *, prune: int | None) -> list[DomainStep]:
        """The steps to the written domains, and with `prune` to these alone; it is the number of domains to remove."""
        desired: dict[str, WrittenDomain] = {}
        for one in map(written, documents):
            first = desired.setdefault(_short(one.name), one)
            if first is not one:
                raise one.document.error(
                    f"domain '{one.name}' is '{first.name}' in {first.document.place('name')}", "name"
                )
        actual = {_short(domain.name): domain for domain in self.client.domains()}
        steps = plan(desired, actual, differ, lambda found: prune is not None)
        _check_number(steps, prune)
        return steps

    def about(self, step: DomainStep) -> str:
        return ""

    def warnings(self, steps: Sequence[DomainStep]) -> Iterable[str]:
        lost = [step.found.name for step in steps if step.found and step.action is Action.REMOVE]
        return (
            [f"The users of {', '.join(lost)} are removed, completely when they have no other domain."] if lost else []
        )

    def prepare(self, steps: Sequence[DomainStep]) -> None:
        """Nothing has to be read."""

    def make(self, step: DomainStep) -> str:
        wanted, found = step.wanted, step.found
        if wanted is None:
            assert found is not None
            self.client.delete_domain(found.name)
            return "removed"
        if found is None:
            found = self.client.create_domain(wanted.name, wanted.plan, time=wanted.time, volume=wanted.volume)
            if wanted.state == DISABLED:
                self.client.disable_domain(found.name)
            return "created"
        if wanted.state == DISABLED:
            self.client.disable_domain(found.name)
        else:
            self.client.enable_domain(found.name)
        return str(wanted.state)


def differ(wanted: WrittenDomain, found: Domain | None) -> list[Difference]:
    """What differs from the domain that is there. UsageError when that cannot be changed."""
    before = {} if found is None else exported(found)
    given = {key: getattr(wanted, key) for key in KEYS[1:]}
    changes = {key: value for key, value in given.items() if value is not None and value != before.get(key)}
    fixed = next((key for key in changes if key != "state"), None)
    if found is not None and fixed is not None:
        raise wanted.document.error(
            f"domain {found.name} has {fixed} {before.get(fixed)}, which cannot be changed to {changes[fixed]}",
            fixed,
            hint=f"write {fixed}: {before.get(fixed)}" if fixed in before else f"leave out {fixed}",
        )
    return [Difference(key, _word(before, key), str(value)) for key, value in changes.items()]


def _word(values: Mapping[str, Any], key: str) -> str | None:
    return None if key not in values else str(values[key])


def _check_number(steps: Sequence[DomainStep], prune: int | None) -> None:
    """UsageError unless as many domains are removed as the user says: their users go with them."""
    names = [step.found.name for step in steps if step.found and step.action is Action.REMOVE]
    if prune is not None and len(names) != prune:
        raise UsageError(
            f"no file has {counted(len(names), 'domain')}, not {prune}" + (f": {', '.join(names)}" if names else ""),
            hint=f"if they are to be removed with their users: --prune-domains {len(names)}",
        )


def _state(domain: Domain) -> str | None:
    """Whether a domain is enabled; None where that is not known."""
    if domain.status is None:
        return None
    return ENABLED if domain.status.casefold() == DomainStatus.ACTIVE.casefold() else DISABLED


def _short(name: str) -> str:
    """The name without its reseller."""
    return name.partition("@")[0]
