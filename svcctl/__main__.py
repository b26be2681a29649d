"""`python -m svcctl`."""

from svcctl.cli import main

main()
