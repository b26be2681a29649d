"""The authorities that are trusted: the file of a profile, SSL_CERT_FILE and SSL_CERT_DIR, and what each may lack."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.certificates import self_signed
from support.environments import Environment, run
from support.shells import Shell

from svcctl.api.addresses import trust
from svcctl.errors import UsageError

URLS = ("https://service.test",)
NO_CERTIFICATE = "it has no readable certificate in PEM format"
NO_NAMES = "it has no certificates with the names that 'openssl rehash' makes"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files and directories that can and cannot be used."""
    folder = tmp_path_factory.mktemp("trust")
    good = self_signed(folder / "good", "service.test").read_text()
    (folder / "empty").touch()
    (folder / "text").write_text("no certificate\n")
    (folder / "cut").write_text(good[:200])
    (folder / "dangling").symlink_to(folder / "gone")
    subprocess.run(["openssl", "x509", "-in", "good", "-outform", "der", "-out", "der"], cwd=folder, check=True)
    for name in ("hashed", "plain", "no-files", "broken"):
        (folder / name).mkdir()
    for name in ("hashed/ca.pem", "plain/ca.pem"):
        (folder / name).write_text(good)
    (folder / "broken" / "12345678.0").symlink_to(folder / "gone")
    subprocess.run(["openssl", "rehash", "hashed"], cwd=folder, check=True)
    return folder


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Callable[..., None]:
    """Sets the two variables, whose paths are in the folder."""

    def set_variables(**values: str) -> None:
        monkeypatch.chdir(folder)
        for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
            if name in values:
                monkeypatch.setenv(name, values[name])
            else:
                monkeypatch.delenv(name, raising=False)

    return set_variables


UNUSABLE_FILES = [
    ("gone", "No such file or directory"),
    ("dangling", "No such file or directory"),
    ("good/ca.pem", "Not a directory"),
    ("hashed", "Is a directory"),
    ("empty", NO_CERTIFICATE),
    ("text", NO_CERTIFICATE),
    ("cut", NO_CERTIFICATE),
    ("good.key", NO_CERTIFICATE),
    ("der", NO_CERTIFICATE),
]


@pytest.mark.parametrize(("path", "problem"), UNUSABLE_FILES)
def test_a_file_of_the_environment_without_certificates_is_a_usage_error_that_names_the_variable(
    variables: Callable[..., None], path: str, problem: str
) -> None:
    variables(SSL_CERT_FILE=path)
    with pytest.raises(UsageError) as caught:
        trust(True, URLS)
    assert caught.value.message == f"SSL_CERT_FILE '{path}' cannot be used: {problem}"
    assert caught.value.hint == "unset SSL_CERT_FILE, or set it to a file with the certificates of authorities"


@pytest.mark.parametrize(("path", "problem"), UNUSABLE_FILES)
def test_a_bundle_without_certificates_is_a_usage_error(
    variables: Callable[..., None], path: str, problem: str
) -> None:
    variables(SSL_CERT_FILE="good")
    with pytest.raises(UsageError) as caught:
        trust(path, URLS)
    assert caught.value.message == f"the CA bundle '{path}' cannot be used: {problem}"
    assert caught.value.hint == "ca_bundle is a file with the certificates of authorities"


@pytest.mark.parametrize(
    ("paths", "first", "problem"),
    [
        ("gone", "gone", "No such file or directory"),
        ("good", "good", "Not a directory"),
        ("no-files", "no-files", "it is empty"),
        ("plain", "plain", NO_NAMES),
        ("broken", "broken", NO_NAMES),
        ("gone:no-files", "gone", "No such file or directory"),
        (":", "", "it is empty"),
    ],
)
@pytest.mark.parametrize("file", [{}, {"SSL_CERT_FILE": "good"}])
def test_a_directory_where_nothing_can_be_looked_up_is_a_usage_error_that_names_the_variable(
    variables: Callable[..., None], paths: str, first: str, problem: str, file: dict[str, str]
) -> None:
    variables(SSL_CERT_DIR=paths, **file)
    with pytest.raises(UsageError) as caught:
        trust(True, URLS)
    assert caught.value.message == f"SSL_CERT_DIR '{first}' cannot be used: {problem}"
    assert caught.value.hint == "unset SSL_CERT_DIR, or set it to a directory that 'openssl rehash' has prepared"


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"SSL_CERT_FILE": "good"},
        {"SSL_CERT_DIR": "hashed"},
        {"SSL_CERT_DIR": "gone:hashed"},
        {"SSL_CERT_FILE": "good", "SSL_CERT_DIR": "hashed"},
        {"SSL_CERT_FILE": "", "SSL_CERT_DIR": ""},
        {"SSL_CERT_FILE": "", "SSL_CERT_DIR": "hashed"},
    ],
)
def test_usable_and_empty_variables_are_no_error(variables: Callable[..., None], values: dict[str, str]) -> None:
    variables(**values)
    assert trust(True, URLS) is not None


def test_the_variables_are_not_read_where_they_do_not_count(variables: Callable[..., None]) -> None:
    variables(SSL_CERT_FILE="gone", SSL_CERT_DIR="gone")
    assert trust("good", URLS) is not None
    assert trust(False, URLS) is not None
    assert trust(True, ("http://localhost",)) is None


def test_a_file_that_may_not_be_read_is_named_with_its_variable(tmp_path: Path) -> None:
    (tmp_path / "closed.pem").touch(0)
    powerless = Environment(
        {"SVCCTL_BASE_URL": "https://127.0.0.1:1", "SSL_CERT_FILE": "{home}/closed.pem"},
        by=("setpriv", "--bounding-set=-dac_override,-dac_read_search"),
    )
    ended = run(powerless, ("job", "list"), tmp_path)
    said = f"svcctl: error: SSL_CERT_FILE '{tmp_path}/closed.pem' cannot be used: Permission denied"
    assert (ended.code, ended.lines[0]) == (2, said)


def test_profile_check_says_the_same_as_a_command(shell: Shell) -> None:
    variables = {"SVCCTL_BASE_URL": "https://127.0.0.1:1", "SVCCTL_TOKEN": "t", "SSL_CERT_DIR": "/none"}
    asked, checked = shell("job", "list", **variables), shell("profile", "check", **variables)
    assert (asked.returncode, asked.stderr) == (checked.returncode, checked.stderr)
    assert asked.stderr.startswith("svcctl: error: SSL_CERT_DIR '/none' cannot be used: No such file or directory\n")
    assert "\nsettings,failed," in checked.stdout
