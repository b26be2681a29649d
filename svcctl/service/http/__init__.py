"""The HTTP server of the service: routes, checks of requests, and answers."""
