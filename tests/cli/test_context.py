"""The context: frozen, with parts that are made when first used, and flags that change only in a copy."""

import io
from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from svcctl.api.auth import Signature
from svcctl.api.client import Client
from svcctl.cli.context import Context, Flags
from svcctl.errors import CredentialsError, Declined, NotFound, SvcctlError, Unavailable
from svcctl.terminal.diagnostics import Diagnostics


class Answers:
    """A prompt that gives one answer to everything."""

    is_attended = True

    def __init__(self, answer: str) -> None:
        self._answer = answer

    def answer(self, question: str, ending: str, *, hidden: bool = False) -> str:
        return self._answer


def environment(directory: Path) -> Mapping[str, str]:
    return {"SVCCTL_CONFIG": str(directory / "none.yaml"), "SVCCTL_BASE_URL": "http://localhost"}


def test_other_flags_make_another_context_and_leave_this_one_alone(tmp_path: Path) -> None:
    svc = Context(Flags(timeout=5), Diagnostics(io.StringIO()), environment(tmp_path))
    assert svc.profile.timeout == 5
    other = svc.with_flags(timeout=7, retries=0)
    assert (other.profile.timeout, other.profile.retries) == (7, 0)
    assert (svc.profile.timeout, svc.profile.retries) == (5, 4)
    assert (other.diagnostics, other.closing) == (svc.diagnostics, svc.closing)
    with pytest.raises(FrozenInstanceError):
        svc.flags = Flags()  # type: ignore[misc]


def test_the_client_is_made_once_by_the_factory_and_closed_with_the_context(tmp_path: Path) -> None:
    made: list[Client] = []

    def factory(*_: Any) -> Client:
        made.append(Client("http://localhost", Signature("key", "secret")))
        return made[-1]

    svc = Context(Flags(), Diagnostics(io.StringIO()), environment(tmp_path), client_factory=factory)
    with svc.closing:
        assert svc.client is svc.client
    assert len(made) == 1
    with pytest.raises(RuntimeError, match="closed"):
        made[0].jobs()


CHECK = "'svcctl profile check prod'"


def unavailable(**data: bool) -> Unavailable:
    error = Unavailable("no answer")
    for name, value in data.items():
        setattr(error, name, value)
    return error


def of_a_query(text: str | None) -> NotFound:
    error = NotFound("not found")
    error.query = text
    return error


@pytest.mark.parametrize(
    ("profile", "error", "advice"),
    [
        ("local", unavailable(), None),  # it did answer
        (
            "local",
            unavailable(unanswered=True),
            "the local service has ended: see {}/data/service.log, and start it with 'svcctl service start'",
        ),
        ("prod", unavailable(unanswered=True), f"find out why with {CHECK}"),
        (None, unavailable(unanswered=True), "find out why with 'svcctl profile check'"),
        ("prod", unavailable(unanswered=True, untrusted=True), "trust its CA: svcctl profile set prod ca_bundle=FILE"),
        ("prod", CredentialsError("no"), f"{CHECK} tests these credentials and shows what they may do"),
        (
            "prod",
            of_a_query("from t"),
            f"no queries are answered at this address: is base_url right? {CHECK} tests it",
        ),
        ("prod", of_a_query(None), None),
    ],
)
def test_the_data_of_an_error_decides_the_advice_with_the_profile(
    tmp_path: Path, profile: str | None, error: SvcctlError, advice: str | None
) -> None:
    file = tmp_path / "none.yaml"
    file.write_text("profiles: {prod: {base_url: 'https://api.example.com', token: x}}\n")
    file.chmod(0o600)
    svc = Context(
        Flags(profile), Diagnostics(io.StringIO()), {**environment(tmp_path), "SVCCTL_DATA": str(tmp_path / "data")}
    )
    assert svc.advice(error) == (advice and advice.format(tmp_path))


@pytest.mark.parametrize("answer", ["y\n", "YES\n"])
def test_only_a_yes_is_one(answer: str) -> None:
    Context(prompt=Answers(answer)).ask("Remove it?")


@pytest.mark.parametrize("answer", ["\n", "n\n", "yes please\n"])
def test_anything_else_declines(answer: str) -> None:
    with pytest.raises(Declined):
        Context(prompt=Answers(answer)).ask("Remove it?")


def test_a_word_must_be_typed_as_it_is() -> None:
    Context(prompt=Answers("acme\n")).ask_word("Delete acme?", "acme")
    with pytest.raises(Declined):
        Context(prompt=Answers("Acme\n")).ask_word("Delete acme?", "acme")
