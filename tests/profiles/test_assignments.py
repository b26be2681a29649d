"""The fields that `profile set` is given."""

import pytest

from svcctl.errors import UsageError
from svcctl.profiles.assignments import assigned, typed

# What the errors say, each once; the tests state their kind.
WORDS = {
    "a secret on the command line": "api_secret is a secret, and other users can see command lines",
    "not a field": "'base_url' is not of the form FIELD=VALUE",
    "base_url": "that cannot be used: it must begin with https:// or http://, as in https://api.example.com",
    "an answer that is missing": "no {key} yet: the same command asks for it again",
}
HINTS = {
    "base_url": "base_url is needed: it is where requests go (Ctrl-C to stop)",
}


def no_secret(key: str) -> str:
    raise AssertionError(f"{key} was asked for")


def test_a_secret_is_never_an_argument() -> None:
    words = ["base_url=https://a", "api_secret=-", "token=", "api_secret_file=x=y"]
    assert assigned(words, lambda key: f"the {key}") == {
        "base_url": "https://a",
        "api_secret": "the api_secret",
        "token": "",
        "api_secret_file": "x=y",
    }
    with pytest.raises(UsageError) as caught:
        assigned(["api_secret=hunter2"], no_secret)
    assert caught.value.message == WORDS["a secret on the command line"]


def test_no_secret_is_asked_for_before_all_words_are_right() -> None:
    with pytest.raises(UsageError) as caught:
        assigned(["api_secret=-", "base_url"], no_secret)
    assert caught.value.message == WORDS["not a field"]


class Person:
    """Types the given answers in turn, and remembers the prompts; those of secrets are marked."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.prompts: list[str] = []
        self.notes: list[str] = []

    def ask(self, what: str, *, hidden: bool) -> str:
        self.prompts.append(what + " (hidden)" * hidden)
        return self.answers.pop(0)


def test_a_person_types_what_a_connection_needs() -> None:
    person = Person("api.example.com", "", "https://api.example.com/", "", "KEY", "SECRET")
    assert typed({}, {}, person.ask, person.notes.append) == {
        "base_url": "https://api.example.com",
        "auth": "signature",
        "api_key": "KEY",
        "api_secret": "SECRET",
    }
    assert person.prompts == [
        *("base_url (https://…)",) * 3,
        "auth (signature, token or jwt; default signature)",
        "api_key (API key of the domain)",
        "api_secret (API secret) (hidden)",
    ]
    assert person.notes == [
        WORDS["base_url"],
        HINTS["base_url"],
    ]


@pytest.mark.parametrize(
    ("stored", "changes", "prompts"),
    [
        ({"base_url": "https://a", "api_key": "k", "api_secret_command": "c"}, {}, []),
        ({"base_url": "https://a", "token": "t"}, {}, []),
        ({"socket": "/s", "auth": "jwt"}, {}, ["token (bearer token or JWT) (hidden)"]),
        ({"base_url": "https://a"}, {"api_key": "k"}, ["api_secret (API secret) (hidden)"]),
    ],
)
def test_only_what_is_missing_is_asked_for(stored: dict[str, str], changes: dict[str, str], prompts: list[str]) -> None:
    person = Person("typed")
    typed(stored, changes, person.ask, person.notes.append)
    assert person.prompts == prompts
    if prompts:
        key = prompts[0].split()[0]
        person = Person("")
        assert typed(stored, changes, person.ask, person.notes.append) == {}
        assert person.notes == [WORDS["an answer that is missing"].format(key=key)]
