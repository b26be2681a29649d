"""Help is plain text of at most 80 columns, made when it is asked for: `topics` fills templates with the tables of the
code, `command` reads the command tree, and `manual` turns the pages of commands into manual pages.

The names here are those that every command line knows; printing a page loads the rest.
"""

from __future__ import annotations

PAGE_WIDTH = 80

TOPICS = (
    *("dates", "formats", "recipes", "profiles", "environment", "exit-codes", "query-language", "destinations"),
    *("export", "apply", "service", "loading", "cluster", "library"),
)
PARTS = {
    "functions": ("query-language", "\nFunctions\n", "\nContinuous queries\n"),
    "examples": ("query-language", "\nExamples\n", "\nFunctions\n"),
    "proxy": ("environment", "\nProxies\n", "\nLimits\n"),
}
"""Topics that are a part of a page: the page, the heading of the part, and the heading after the part."""


LANGUAGE = (
    *("from", "where", "select", "group", "every", "by", "as", "limit", "offset", "pragma"),
    *("and", "or", "not", "null"),
)
"""Words of the query language other than functions; `svcctl help WORD` is the page of the language."""
