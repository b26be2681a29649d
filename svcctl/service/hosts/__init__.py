"""The hosts that the service connects to for its customers, and how libraries are kept to those that are allowed.

allowed_hosts.py    the rules of SVCCTL_DESTINATIONS_ALLOWED
proxy.py            connections of a library to allowed hosts only
kafka_brokers.py    the brokers of a Kafka cluster
"""
