"""The local service. It implements the whole interface on this machine, with DuckDB.

The service and the client share the code for dates, models, names of destinations, and errors. They have separate code
for signatures and responses, so that a mistake in one of them becomes visible in the other.
"""
