"""Queries: their requests, the steps of continuous queries, the order of concurrent queries, and saved queries."""
