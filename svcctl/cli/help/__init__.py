"""Help pages, which are plain text of at most 80 columns. A page is made when it is printed.

The module `topics` makes the pages of topics from templates, `command` makes the pages of commands from the command
tree, and `manual` converts the pages of commands to manual pages.

Every run of svcctl imports this module. The other modules are imported only when a page is printed.
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
"""Topics that are a part of a longer page. Each has the longer page, the heading of the part, and the next heading."""


LANGUAGE = (
    *("from", "where", "select", "group", "every", "by", "as", "limit", "offset", "pragma"),
    *("and", "or", "not", "null"),
)
"""Words of the query language, except names of functions. `svcctl help WORD` shows the page of the language."""
