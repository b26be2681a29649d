"""Whose files an export finds: what is said when they are another's."""

from dataclasses import replace

from svcctl.exports.ownership import difference
from svcctl.exports.record import About

ABOUT = About("from auth.all", "csv", 3600, "https://events.example.com", {"zone": "GMT+2"})


def test_a_difference_names_the_options_that_differ_and_what_to_give() -> None:
    other = replace(ABOUT, format="tsv", options={"time_zone": "GMT+2", "date_format": "iso"})
    bare = replace(other, options={})
    one = replace(ABOUT, options={"time_zone": "UTC", "date_format": "iso"})
    named = replace(other, options={"clock": "GMT+2"})
    elsewhere = replace(other, service="http://b", query="b")
    assert [
        difference(one, other),
        difference(other, bare),
        difference(bare, other),
        difference(other, named),
    ] == [
        ("another format (csv) and another time zone (UTC)", "--format csv and --time-zone UTC"),
        ("another time zone (GMT+2) and another date format (iso)", "--time-zone GMT+2 and --date-format iso"),
        ("another time zone and another date format", "no --time-zone and no --date-format"),
        ("another date format (iso)", "--date-format iso"),
    ]
    assert difference(other, elsewhere)[0] == f"another query and another service ({ABOUT.service})"
