"""The local service: implements the whole interface on this machine, with DuckDB.

It shares only facts with the client (dates, models, destination names, errors). It has its own code for signatures and
responses, so that a mistake of the client or of the service becomes visible.
"""
