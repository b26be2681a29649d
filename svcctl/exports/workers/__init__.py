"""The workers of an export, which fetch time windows. Workers are threads of this process, or processes of a cluster.

A task is the request for a window. It has everything that a worker needs to fetch the window.

dispatch.py   gives tasks to the workers, and counts failures
queue.py      holds the tasks of a run, and joins neighbouring windows into one request
fetch.py      fetches a task: requests, checks, stores and retries
split.py      splits the answer for several windows into their files
pace.py       limits and delays the requests of all workers
spool.py      holds temporary data on this machine
cluster.py    connects to the workers of a Dask cluster
"""
