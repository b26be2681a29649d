"""The interface over HTTP: routes, envelopes, streams."""
