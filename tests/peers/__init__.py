"""Real Kafka, S3 and HDFS on 127.0.0.1, for tests that must not believe a stand-in.

A test talks to a peer as the service does: over the peer's own protocol, through the client library of its destination.
Where there is another way, the test reads the data back by it, so a mistake of that library cannot hide itself.
"""
