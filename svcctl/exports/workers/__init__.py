"""The workers of a run, which fetch windows. They are threads of this process, or processes of a cluster.

dispatch.py   hands out tasks, and counts failures
queue.py      holds the tasks of a run, and joins neighbouring windows into one request
fetch.py      fetches a task: requests, checks, stores and retries
split.py      splits the answer for several windows into their files
pace.py       limits and delays the requests of all workers
spool.py      holds temporary data on this machine
cluster.py    connects to the workers of a Dask cluster
"""
