"""The workers of a run: threads of this process, or processes of a cluster, that fetch windows.

dispatch.py   hands tasks out, and counts failures
queue.py      the tasks of a run; joins neighbouring windows into one request
fetch.py      a task: request, check, store, retry
split.py      splits the answer for several windows into their files
pace.py       limits and delays the requests of all workers
spool.py      temporary data on this machine
cluster.py    the workers of a Dask cluster
"""
