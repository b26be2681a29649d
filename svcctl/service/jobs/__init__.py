"""Jobs: their statuses, their storage in the database, and the delivery of their rows.

A job is a query with a destination, such as Kafka or S3, to which the rows are delivered.
"""
