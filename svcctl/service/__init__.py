"""The local service. It implements the whole interface on this machine, with DuckDB.

The service shares some facts with the client: dates, models, names of destinations, and errors. Signatures and
responses have separate code in the client and in the service. So a mistake in one of them becomes visible in the other.
"""
