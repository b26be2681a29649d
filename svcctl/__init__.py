"""svcctl: query stored events, export them, and run the jobs, domains and roles of the service behind them."""

__version__ = "0.1.0"
