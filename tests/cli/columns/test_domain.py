"""Domains as lists."""

from support.listings import laid_out

from svcctl.api.models import Domain
from svcctl.cli.columns.domain import DOMAINS


def test_members_that_some_domains_have_become_columns() -> None:
    users = [{"email": "ann@a.example", "owner": True}, {"email": "bob@a.example"}]
    domains = [Domain("a@r", "basic", extra={"users": users}), Domain("b@r", extra={"region": "eu"})]
    columns, data = laid_out(DOMAINS, domains, shown=True)
    assert [column.name for column in columns] == ["name", "plan", "time", "volume", "status", "users", "region"]
    assert data == [
        ["a@r", "basic", None, None, None, "ann@a.example (owner), bob@a.example", None],
        ["b@r", None, None, None, None, None, "eu"],
    ]
    assert laid_out(DOMAINS, domains, shown=False)[1][0][5] == users
