"""One module a noun; each has a `register` that adds its commands to the root app, and none imports another."""
