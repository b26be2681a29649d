"""What people see: stdout and stderr, the output formats, tables and charts."""
