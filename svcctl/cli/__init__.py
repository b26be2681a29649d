"""The command line, and all code that uses Typer."""
