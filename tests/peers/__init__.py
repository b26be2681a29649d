"""Real Kafka, S3 and HDFS on 127.0.0.1, for tests that must not believe a stand-in.

A test talks to a peer as the service does: over the peer's own protocol, through the client library of its destination.
The test reads the data back by another way, so a mistake of that library cannot hide itself.
"""
