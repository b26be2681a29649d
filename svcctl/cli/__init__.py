"""The command line: all that knows Typer."""
