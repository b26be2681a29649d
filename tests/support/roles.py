"""A file of two roles, and a service that accepts every role."""

from __future__ import annotations

import httpx

ROLES = """\
- name: Night shift
  description: Looks
  policies: [Search, Alerts]
  applications: explorer
  resourceIds: {tables: [1, 2], lookups: [7]}
  defaultApplicationName: explorer
- name: Readers
  policies: Search
  applications: []
  resourceIds: {}
"""


def accepting(request: httpx.Request) -> httpx.Response:
    shown = request.method == "GET" and not request.url.path.endswith("/roles")
    return httpx.Response(200, json={"name": "a"} if shown else None)
