"""The local service: a server on this machine that has the whole HTTP interface, and runs queries in DuckDB.

The service and the client share the code for dates, models, names of destinations, and errors. They have separate code
for signatures and responses, so that a mistake in one of them becomes visible in the other.
"""
