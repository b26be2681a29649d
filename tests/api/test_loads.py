"""The options of a load, as the client sends and the service reads them."""

import json
from dataclasses import fields

import pytest

from svcctl.api.loads import LoadOptions, SkipLimit
from svcctl.errors import ServiceError, UsageError

ALL = LoadOptions(
    time_field="at",
    time_format="%d/%m",
    time_zone="Europe/Berlin",
    format="csv",
    types={"n": "int8"},
    null=("-", "n/a"),
    replace=True,
    strict=True,
    max_skipped=SkipLimit.parse("5%"),
    header=False,
    names=("time", "n"),
    fixed_columns=True,
    events_in="Records",
)


def test_every_option_reaches_the_service() -> None:
    default = LoadOptions()
    assert [each.name for each in fields(ALL) if getattr(ALL, each.name) == getattr(default, each.name)] == []
    for options in (ALL, default):
        assert LoadOptions.from_json(json.loads(json.dumps(options.to_json()))) == options
    assert LoadOptions.from_json({}) == default


@pytest.mark.parametrize(
    ("member", "value", "kind"),
    [
        ("timeField", 1, ServiceError),
        ("types", ["n"], ServiceError),
        ("null", "n/a", ServiceError),
        ("strict", "yes", ServiceError),
        ("timeZone", "Mars/Olympus", UsageError),
    ],
)
def test_a_member_of_another_type_is_refused(member: str, value: object, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        LoadOptions.from_json({member: value})
    assert str(value if kind is UsageError else member) in str(caught.value)
