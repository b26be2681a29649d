"""The terminal: stdout and stderr, output formats, tables and charts."""
