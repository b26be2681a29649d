"""What runs the plans of the query language: DuckDB on this machine."""
