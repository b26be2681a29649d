"""The client as a library, independent of the command line. The client needs the packages certifi, idna and msgpack."""
