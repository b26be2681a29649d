"""The command line: all that knows Typer."""

import sys

# Importing httpx loads its command line too, if it can; that would load rich and click and take 40 ms more. Only the
# process of a command line may say so: other programs may want the whole of httpx.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
