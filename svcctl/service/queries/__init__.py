"""Queries: what a client asks, the steps that answer it, the turns of queries on the engine, and saved queries."""
