"""Demo events, made with DuckDB's SQL. Each table has a SELECT that makes the events of a range of seconds.

Events in the same second have different numbers, which are called lanes. Every value of an event is computed from a
hash of three things: the event's second, its lane, and the name of the value. DuckDB computes the hash, so another
release of DuckDB may make other events.

Traffic varies with the time of day and the day of the week. There are three kinds of incidents. The number of days
since 1970-01-01, here called `day`, decides when an incident happens:

- `day` modulo 7 is 3, from 14:00 to 14:12 UTC: most responses of the shop are slow and have a status 5xx
- `day` modulo 9 is 4, from 02:17 UTC: one address tries passwords for `admin` for 12 minutes, then logs in
- `day` modulo 11 is 6, from 01:00 to 04:00 UTC: the host 10.0.3.77 sends gigabytes to one outside address

All addresses are private, or from the ranges reserved for documentation.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import pyarrow as pa

from svcctl.service.engines.duckdb.opening import scratch

Item = str | int | None


def made(table: str, start: int, end: int) -> pa.Table:
    """Return the events of a demo table from `start` up to, but not including, `end`, in any order.

    `start` and `end` are epoch seconds.
    """
    with scratch() as connection:
        return connection.sql(SELECTS[table].format(start=start, end=end)).to_arrow_table()


def _seconds(name: str, per_second: float, lanes: int) -> str:
    """Return SQL that makes a row for each event, with the event's date and a hash `h` for its other values.

    `per_second` is the number of events per second in the busiest hour. `lanes` is the maximum number of events in a
    second.
    """
    rhythm = "(0.3 + 0.7 * pow(sin(pi() * (s % 86400 - 7200) / 86400), 2))"
    weekday = "CASE WHEN (s // 86400 + 4) % 7 IN (0, 6) THEN 0.6 ELSE 1 END"
    return _moments(name, lanes, f"{_chance('rate')} < {per_second / lanes} * {rhythm} * {weekday}")


def _moments(name: str, lanes: int, when: str) -> str:
    return f"""
        SELECT s, s // 86400 AS day, s % 86400 AS second, {_hash(name, f"s * {lanes} + lane")} AS h,
            make_timestamp(s * 1000000 + ({_hash("ms")} % 1000)::BIGINT * 1000) AS eventdate
        FROM range({{start}}, {{end}}) seconds(s), range({lanes}) lanes(lane)
        WHERE {when}
    """


def _hash(name: str, of: str = "h") -> str:
    """Return SQL for a hash of a name and an SQL value. The argument `of` is the SQL value.

    DuckDB's own hash of several values is not random enough.
    """
    return f"hash(xor(hash({of}), {zlib.crc32(name.encode())}::UBIGINT))"


def _chance(name: str, of: str = "h") -> str:
    """Return SQL for a pseudorandom number from 0 to 1. The number depends on `name` and on the SQL value `of`."""
    return f"(({_hash(name, of)} >> 11)::DOUBLE / {1 << 53})"


def _pick(items: Sequence[Item], name: str, *, of: str = "h", skew: float = 1) -> str:
    """Return SQL that picks one of the items. The choice depends on `name` and on the SQL value `of`.

    With a larger `skew`, the first items are picked more often.
    """
    values = ", ".join(
        "NULL" if item is None else f"'{item}'" if isinstance(item, str) else str(item) for item in items
    )
    return f"[{values}][1 + floor(pow({_chance(name, of)}, {skew}) * {len(items)})::INTEGER]"


def _amount(low: float, high: float, name: str, type_: str = "BIGINT") -> str:
    """Return SQL for a number between `low` and `high`. Small numbers are much more frequent than large numbers."""
    return f"floor({low} * pow({high / low}, pow({_chance(name)}, 1.6)))::{type_}"


def _ip(*octets: str | int) -> str:
    return "(" + " + ".join(f"({o})::BIGINT * {256 ** (3 - i)}" for i, o in enumerate(octets)) + ")::UINTEGER"


def _host(name: str, of: str = "h") -> str:
    return f"(1 + {_hash(name, of)} % 254)"


def _outside(name: str, of: str = "h") -> str:
    """Return SQL for an address in one of the three ranges reserved for documentation."""
    nets = [(192 << 16) + 2, (198 << 16) + (51 << 8) + 100, (203 << 16) + 113]
    return f"({_pick(nets, name + ' net', of=of, skew=1.5)}::BIGINT * 256 + {_host(name, of)})::UINTEGER"


_USERS = ("amara", "brook", "chidi", "dalia", "emil", "farid", "greta", "hana", "idris", "kira", "liam", "mina", "zoe")
_COUNTRIES = ("ES", "US", "DE", "FR", "GB", "IN", "BR", "JP", "MX", "IT", "NL", "PL", "SE", "ZA", None)
_AGENTS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    "Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0",
    "Mozilla/5.0 (Linux; Android 14; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36",
    "curl/8.8.0",
    "shop-monitor/2.1",
    None,
)
_PAGES = ("/", "/products", "/search", "/cart", "/login", "/offers", "/account", "/checkout", "/help", "/old/catalogue")
_KINDS = ("books", "shoes", "garden", "music", "toys", "coffee", "lamps", "bikes")
_REFERRERS = (
    "https://shop.example.com/",
    "https://search.example.net/?q=shoes",
    "https://news.example.org/deals",
    None,
)
_FAILURES = ("bad password", "bad password", "unknown user", "account locked", "expired password")
_PORTS = (443, 53, 80, 123, 22, 25, 8443, 3389, 5432, 445)

_BURST = "(day % 7 = 3 AND second BETWEEN 50400 AND 51119)"
_GUESSING = "day % 9 = 4 AND second BETWEEN 8220 AND 8940"
_LEAK = "day % 11 = 6 AND second BETWEEN 3600 AND 14399 AND second % 20 = 0"

# Each period of ten minutes has about forty visitors, and each event belongs to one of these visitors.
_WEB = f"""
    WITH events AS ({_seconds("web", 0.8, 2)}),
    visits AS (
        SELECT *, floor(pow({_chance("user", "s // 600 * 40 + h % 40")}, 2) * 4000)::INTEGER AS visitor,
            {_chance("page")} < 0.55 AS product, {_chance("status")} AS luck,
            {_BURST} AND {_chance("burst")} < 0.7 AS broken
        FROM events
    ),
    pages AS (
        SELECT *, CASE WHEN product THEN concat('/products/', {_pick(_KINDS, "kind", skew=1.7)}, '/',
                100 + floor(pow({_chance("item")}, 2.5) * 900)::INTEGER)
            ELSE {_pick(_PAGES, "path", skew=1.5)} END AS path
        FROM visits
    )
    SELECT eventdate, {_outside("client", "visitor")} AS "clientIpAddress",
        (1024 + {_hash("port", "visitor + s // 600 * 4000")} % 64000)::INTEGER AS "clientPort",
        CASE WHEN path IN ('/cart', '/login', '/checkout') AND {_chance("method")} < 0.7 THEN 'POST'
            WHEN {_chance("method")} < 0.02 THEN 'HEAD' ELSE 'GET' END AS method,
        CASE WHEN path = '/search' THEN concat(path, '?q=', {_pick(_KINDS, "term", skew=1.5)}, ',new')
            ELSE path END AS uri,
        CASE WHEN {_hash("protocol", "visitor")} % 4 = 0 THEN 'HTTP/1.1' ELSE 'HTTP/2.0' END AS protocol,
        CASE WHEN broken THEN {_pick((503, 500, 504), "5xx", skew=2)} WHEN path LIKE '/old%' THEN 301
            WHEN luck < 0.9 THEN 200 WHEN luck < 0.94 THEN 304 WHEN luck < 0.975 THEN 404 WHEN luck < 0.99 THEN 302
            WHEN luck < 0.997 THEN 403 ELSE 500 END::INTEGER AS "statusCode",
        {_amount(180, 900_000, "bytes")} AS "bytesTransferred",
        ({_amount(3, 4_000, "time", "INTEGER")} * CASE WHEN broken THEN 15 ELSE 1 END)::INTEGER AS "timeTaken",
        {_pick(_REFERRERS, "referrer")} AS "referralUri",
        {_pick(_AGENTS, "agent", of="visitor", skew=1.8)} AS "userAgent",
        CASE WHEN {_hash("known", "visitor")} % 4 > 0 THEN concat('user', visitor) END AS "userId",
        {_pick(_COUNTRIES, "country", of="visitor", skew=1.6)} AS country
    FROM pages
"""

_AUTH = f"""
    WITH events AS ({_seconds("auth", 0.1, 1)}),
    logins AS (
        SELECT *, floor(pow({_chance("user")}, 1.4) * 260)::INTEGER AS person, {_chance("result")} < 0.06 AS failed
        FROM events
    ),
    guesses AS ({_moments("guess", 1, _GUESSING)})
    SELECT eventdate, concat({_pick(_USERS, "name", of="person")}, '.', person) AS user,
        {_ip(10, 0, _hash("floor", "person") + " % 8", _host("desk", "person"))} AS "srcIp",
        {_pick(("password", "sso", "key"), "method", of="person", skew=1.5)} AS method,
        CASE WHEN failed THEN 'FAIL' ELSE 'OK' END AS result,
        CASE WHEN failed THEN {_pick(_FAILURES, "reason")} END AS reason
    FROM logins
    UNION ALL
    SELECT eventdate, 'admin', {_ip(203, 0, 113, _host("attacker", "day"))}, 'password',
        CASE WHEN second = 8940 THEN 'OK' ELSE 'FAIL' END, CASE WHEN second < 8940 THEN 'bad password' END
    FROM guesses
"""

_FIREWALL = f"""
    WITH events AS ({_seconds("firewall", 0.6, 2)}),
    leaks AS ({_moments("leak", 1, _LEAK)}),
    flows AS (
        SELECT *, {_chance("deny")} < 0.07 AS denied, {_pick(_PORTS, "port", skew=2.2)} AS port FROM events
    )
    SELECT eventdate, {_ip(10, 0, _hash("net") + " % 8", "1 + floor(pow(" + _chance("host") + ", 1.8) * 254)::INTEGER")}
            AS "srcIp",
        (32768 + {_hash("source port")} % 28000)::INTEGER AS "srcPort", {_outside("target")} AS "dstIp",
        port::INTEGER AS "dstPort", CASE WHEN port IN (53, 123) THEN 'udp' ELSE 'tcp' END AS proto,
        CASE WHEN denied THEN 'DENY' ELSE 'ALLOW' END AS action,
        CASE WHEN denied THEN 0 ELSE {_amount(120, 3_000_000, "in")} END AS "bytesIn",
        CASE WHEN denied THEN 60 ELSE {_amount(60, 400_000, "out")} END AS "bytesOut"
    FROM flows
    UNION ALL
    SELECT eventdate, {_ip(10, 0, 3, 77)}, (32768 + {_hash("source port")} % 28000)::INTEGER, {_ip(198, 51, 100, 23)},
        443, 'tcp', 'ALLOW', {_amount(2_000, 9_000, "in")}, {_amount(30_000_000, 60_000_000, "out")}
    FROM leaks
"""

SELECTS: Mapping[str, str] = {"demo.ecommerce.data": _WEB, "auth.all": _AUTH, "firewall.all": _FIREWALL}
"""The SELECT that makes the events of each table.

The placeholders `{start}` and `{end}` are epoch seconds. All events are dated at or after `{start}` and before `{end}`.
"""
