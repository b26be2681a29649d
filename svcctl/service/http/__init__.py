"""The service's side of the interface over HTTP: routes, envelopes and streams."""
