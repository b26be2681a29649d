"""The identity of an export: the words for its differences from another one."""

from dataclasses import replace

from svcctl.dates.zones import named_zone
from svcctl.exports.identity import Identity

ZONE = named_zone("GMT+2")
IDENTITY = Identity("from auth.all", "csv", 3600, "https://events.example.com", time_zone=ZONE)


def test_a_difference_names_the_options_that_differ_and_what_to_give() -> None:
    other = replace(IDENTITY, format="tsv", time_zone=ZONE, date_format="iso")
    bare = replace(other, time_zone=None, date_format=None)
    one = replace(IDENTITY, time_zone=named_zone("UTC"), date_format="iso")
    named = replace(other, time_zone=None, window_zone=ZONE, date_format=None)
    elsewhere = replace(other, service="http://b", query="b")
    assert [
        one.difference(other),
        other.difference(bare),
        bare.difference(other),
        other.difference(named),
    ] == [
        ("another format (csv) and another time zone (UTC)", "--format csv and --time-zone UTC"),
        ("another date format (iso) and another time zone (GMT+2)", "--date-format iso and --time-zone GMT+2"),
        ("another date format and another time zone", "no --date-format and no --time-zone"),
        ("another date format (iso)", "--date-format iso"),
    ]
    assert other.difference(elsewhere)[0] == f"another query and another service ({IDENTITY.service})"
