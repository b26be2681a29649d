"""Domains and roles end as the files say, whatever answer is lost and wherever a command is killed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.job_service import Faults, Killed
from support.over_httpx import OverHttpx
from support.state import with_catalog

from svcctl.api.auth import Bearer
from svcctl.api.client import Client
from svcctl.cli.apply.domain_steps import Domains
from svcctl.cli.apply.role_steps import Roles
from svcctl.cli.inputs import yaml_files
from svcctl.cli.inputs.domain_files import written
from svcctl.cli.inputs.role_files import WrittenRole
from svcctl.errors import SvcctlError
from svcctl.service.accounts import accounts, domains, seed, users
from svcctl.service.accounts.accounts import Account
from svcctl.service.http.app import build
from svcctl.service.http.context import Service

State = Mapping[str, Any]
FAULTS = st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["lost", "kill before", "kill behind"])), max_size=5)
STATES: Mapping[str, st.SearchStrategy[State]] = {
    "domain": st.dictionaries(
        st.sampled_from("abc"), st.sampled_from([{}, {"state": "enabled"}, {"state": "disabled"}])
    ),
    "role": st.dictionaries(
        st.sampled_from("abc"),
        st.fixed_dictionaries({"policies": st.lists(st.sampled_from(["Search", "Alerts"]), min_size=1, unique=True)}),
    ),
}


def planned(client: Client, kind: str, state: State) -> tuple[Domains | Roles, Sequence[Any]]:
    """The plan for a state, which removes what is not in it."""
    bodies = [{"name": name, **({"plan": "basic"} if kind == "domain" else {}), **body} for name, body in state.items()]
    described = yaml_files.parse(yaml_files.to_yaml(bodies), "f.yaml", kind)
    if kind == "role":
        roles = Roles(client, "own")
        return roles, roles.steps(list(map(WrittenRole, described)), prune=True)
    own = yaml_files.parse("name: own\nplan: basic\n", "f.yaml", kind)
    found = Domains(client)
    there = {domain.name.partition("@")[0] for domain in client.domains()}
    return found, found.steps(map(written, [*own, *described]), prune=len(there - {*state, "own"}))


def applied(client: Client, kind: str, state: State) -> None:
    noun, steps = planned(client, kind, state)
    make: Callable[[Any], str] = noun.make
    for step in steps:
        make(step)


@pytest.mark.parametrize("kind", STATES)
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), faults=FAULTS)
def test_domains_and_roles_end_as_the_files_say_after_lost_answers_and_kills(
    kind: str, data: st.DataObject, faults: list[tuple[int, str]]
) -> None:
    states: list[State] = data.draw(st.lists(STATES[kind], min_size=1, max_size=3))
    with tempfile.TemporaryDirectory() as directory, closing(with_catalog(Path(directory) / "state.db")) as store:
        accounts.put(store, Account("key", "secret", "token", "", reseller=seed.RESELLER))
        domains.create(store, seed.RESELLER, {"name": "own", "plan": "basic"})
        users.assign(store, "own@demo", "ann@own.example", "OWNER")
        wire = Faults(build(Service(cast(Any, None), store, cast(Any, None))))
        client = Client("http://localhost", Bearer("token"), transport=OverHttpx(wire), retries=0)
        for state in states:
            wire.due = list(faults)
            with suppress(Killed, SvcctlError):
                applied(client, kind, state)
        wire.due = []
        for _ in range(2):
            applied(client, kind, states[-1])
        assert planned(client, kind, states[-1])[1] == []
        there = [*client.roles("own")] if kind == "role" else [*client.domains()]
        assert {str(one.name).partition("@")[0] for one in there} - {"own"} == set(states[-1])
