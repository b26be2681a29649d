"""The local service: implements the whole interface on this machine, with DuckDB.

It shares only facts with the client (dates, models, destination names, errors). It verifies signatures and encodes
responses by its own reading of the interface, so that a mistake in one of the two shows in the other.
"""
