"""Variables in the files that describe what there shall be."""

from pathlib import Path

import pytest

from svcctl.cli.inputs.yaml_files import read
from svcctl.errors import UsageError
from svcctl.io.yaml_text import PlainText

JOB = """\
name: "{{env}}-auth"
query: from auth.all where user = {{user}}
from: 2026-01-31
destination:
  params: {topic: "{{env}}.fails", n: 3}
"""


def test_variables_are_filled_in_after_the_yaml_is_read_and_quoted_in_queries_only(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(JOB)
    (job,) = read([file], "job", ["env=a: b", 'user="x"'])
    assert job.fields == {
        "name": "a: b-auth",
        "query": 'from auth.all where user = "\\"x\\""',
        "from": "2026-01-31",
        "destination": {"params": {"topic": "a: b.fails", "n": "3"}},
    }
    assert job.place("destination.params.topic") == f"{file}, line 5"


@pytest.mark.parametrize(
    ("var", "message"),
    [
        (["env=e"], "{file}, line 2: query: {{{{user}}}} has no value"),
        (["env=e", "user=u", "x=y"], "no file uses {{{{x}}}}, which --var gives"),
        (["env"], "--var 'env' is not of the form K=V"),
    ],
)
def test_a_variable_without_a_value_and_a_value_without_a_variable_are_refused(
    tmp_path: Path, var: list[str], message: str
) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(JOB)
    with pytest.raises(UsageError) as caught:
        read([file], "job", var)
    assert caught.value.message == message.format(file=file)


def test_a_variable_never_makes_a_number_of_a_text(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text("name: a\nplain: 1\nfilled: '{{n}}'\nin_text: 0{{n}}\nlist: ['{{n}}', 1]\n")
    (job,) = read([file], "job", ["n=1"])
    assert job.fields == {"name": "a", "plain": "1", "filled": "1", "in_text": "01", "list": ["1", "1"]}
    assert [key for key, value in job.fields.items() if isinstance(value, PlainText)] == ["name", "plain"]


def test_two_things_of_one_name_in_two_files_are_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text("name: a\n")
    other.write_text("- name: b\n- name: '{{n}}'\n")
    with pytest.raises(UsageError) as caught:
        read([one, other], "job", ["n=a"])
    assert caught.value.message == f"{other}, line 2: job 'a' appears twice, first in {one}, line 1"
