"""The local service: the whole interface, on DuckDB, on this machine.

It shares only facts with the client (dates, models, destination names, errors): it verifies signatures and encodes
responses by its own reading of the interface, so that the two cannot agree on a mistake.
"""
