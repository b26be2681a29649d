"""Functions of other query languages, with advice on what to write in their place.

The service uses the advice when it refuses a query, and 'svcctl help NAME' shows the advice.
"""

from __future__ import annotations

import re

_ELSEWHERE = {
    name: answer
    for answer, names in {
        # conditions
        'write text -> "part"': "contains includes strpos instr indexof locate position charindex",
        'write text ->> "part"': "icontains",
        'write text ~ re("…")': "regexp regexplike regexpmatches regexmatch regex rlike match",
        'write text ~ nameglob("adm*")': "like ilike glob wildcard fnmatch",
        'write has(text, "part", "other part")': "hasany containsany",
        'write startswith(text, "part")': "hasprefix",
        'write endswith(text, "part")': "hassuffix",
        'write x in {"a", "b"}': "isin inlist",
        "write 1 <= x <= 3": "between",
        "write ip <- 10.0.0.0/8": "cidrmatch incidr ipincidr ipv4isinrange ipv4ismatch ipinrange isinsubnet insubnet",
        "write isnull({})": "isempty isna isblank",
        "write isnotnull({})": "notnull notna isnotempty exists",
        # choices
        "write ifthenelse(condition, value, other value)": "if iif iff case multiif switch",
        "write ifthenelse(isnull(x), other, x)": "coalesce ifnull nvl fillna",
        "write ifthenelse(x = y, null, x)": "nullif",
        "write ifthenelse(a > b, a, b)": "greatest",
        "write ifthenelse(a < b, a, b)": "least",
        # text
        'peek(text, re("…")) gives a part of a text, split(text, ",", 1) one between separators': (
            "substring substr mid left right slice extract regexpextract regexextract regexpsubstr rex parse parseurl"
        ),
        'write jsonparse(text, "a.b[0]"), which reads a member of JSON text': (
            "json parsejson jsonextract jsonvalue jsonextractstring jsonextractscalar jsonquery getjsonobject spath "
            "todynamic jq jsonb fromjson jsonget jsonpath jsontuple jsonextractpath jsonextractpathtext extractjson "
            "jsonbextractpathtext jsonextractint jsonextractfloat jsonextractbool jsonextractraw unpackjson variantget "
            "simplejsonextractstring visitparamextractstring jsondecode jsonunquote tryparsejson"
        ),
        'text ->> "part" ignores case; jsonparse(text, "a.b[0]") reads a member of JSON text': "->>",
        "strings are joined by +": "concat concatws strcat format printf sprintf",
        "write length({})": "len strlen size charlength characterlength",
        "write lower({})": "lcase tolower lowercase",
        "write upper({})": "ucase toupper uppercase",
        "write trim({})": "strip btrim ltrim rtrim lstrip rstrip",
        'write split(text, ",", 0)': "splitpart splitbychar strsplit",
        "write replaceall({})": "replace replacestring",
        "replaceall(…) replaces every occurrence of a text; there is no function that replaces a pattern": (
            "regexpreplace regexreplace replaceregex gsub"
        ),
        # numbers and conversions
        "write str({})": "string text varchar tostring tochar tovarchar",
        "write int8({})": "integer int4 int32 int64 long bigint toint tointeger tolong tobigint trunc truncate",
        "write float8({})": "float float4 float64 double real decimal numeric number "
        "tonumber todouble tofloat toreal todecimal",
        "write bool({})": "boolean tobool toboolean",
        "write ip4({})": "ip ipv4 inet toip toipv4 parseipv4",
        "write str(…), int(…), int8(…), float8(…) or ip4(…)": "cast convert trycast",
        "write ceil({})": "ceiling",
        "write a % b": "mod modulo",
        # dates
        'write group every 1d, or formatdate({}, "yyyy-MM-dd")': "date todate startofday tostartofday",
        "write group every 5m": "datetrunc bin timebucket bucket timefloor tostartofinterval",
        "write group every 1h": "startofhour tostartofhour",
        "write group every 7d, whose periods begin on Thursdays": "week weekofyear startofweek tostartofweek",
        "write day({})": "dayofmonth mday getday",
        "write hour({})": "hourofday gethour",
        "write month({})": "monthofyear getmonth",
        "write year({})": "getyear",
        "write ceil(month({}) / 3)": "quarter",
        "write int8(epoch({}) / 86400000 + 4) % 7, which counts from Sunday as 0": "weekday dayofweek dow dayname",
        "write formatdate(…)": "dateformat formatdatetime strftime",
        "write parsedate(…)": "totimestamp todatetime datetime strptime strtodate dateparse parsedatetime",
        'write formatdate(eventdate, "yyyy-MM-dd HH:mm", "Europe/Berlin")': (
            "converttz converttimezone fromutctimestamp totimezone timezone"
        ),
        'write parsedate(text, "yyyy-MM-dd HH:mm", "Europe/Berlin")': "toutctimestamp",
        "write epoch({}), in milliseconds": "unixtimestamp tounixtime tounixtimestamp toepoch",
        "write timestamp({} * 1000) of seconds, timestamp({}) of milliseconds": (
            "fromunixtime fromunixtimestamp fromepoch"
        ),
        "write (epoch(b) - epoch(a)) / 1000, in seconds": "datediff timestampdiff timediff",
        "write timestamp(epoch(…) + 3600000), in milliseconds": "dateadd datesub timestampadd",
        "moments are counted in milliseconds: epoch(eventdate) > epoch(now()) - 3600000": "ago interval relativetime",
        "write now()": "getdate sysdate utcnow currenttimestamp",
        "write today()": "curdate currentdate",
        # aggregates
        "write avg({})": "mean average",
        "write stddev({})": "stdev std stddevsamp",
        "write stddev({}) * stddev({})": "var variance varsamp",
        "write first({})": "earliest firstvalue any anyvalue takeany",
        "write last({})": "latest lastvalue",
        "first(…) and last(…) are the values with the earliest and the latest eventdate": "argmin argmax minby maxby",
        "write sum(int({}))": "countif countwhere",
        "write sum(ifthenelse(condition, x, 0))": "sumif",
        "write avg(ifthenelse(condition, x, null))": "avgif",
        "write percentile(x, 95)": "quantile percentilecont percentileapprox perc approxpercentile approxquantile",
        "hllppcount(…) counts distinct values, approximately": (
            "countdistinct dcount dc uniq uniqexact nunique approxcountdistinct approxdistinct"
        ),
        "write group by {}; hllppcount({}) counts distinct values": "distinct unique",
        "write collectdistinct({})": "values list arrayagg stringagg groupconcat listagg makeset makelist "
        "collectset collectlist groupuniqarray",
        "write group by {} select count() as n, and print it with --sort n:desc --top 10": (
            "mode topk top rare valuecounts"
        ),
    }.items()
    for name in names.split()
}
"""Advice on replacing functions of other query languages, by the name of the function.

The names are in lower case and without underscores.
"""
_PERCENTILE = re.compile(r"p(?:erc)?(\d{1,2})")


def function_answer(name: str, arguments: str = "…") -> str | None:
    """Return advice on replacing a function of another query language; None for an unknown name.

    `arguments` is the text of the function's arguments, which the advice may contain.
    """
    name = name.casefold().replace("_", "")
    if match := _PERCENTILE.fullmatch(name):
        return f"write percentile(…, {match[1]})"
    advice = _ELSEWHERE.get(name)
    return advice and advice.replace("{}", arguments)
