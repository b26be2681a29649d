"""The client as a library, independent of the command line; it needs certifi, idna and msgpack."""
