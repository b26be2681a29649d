"""Exports. An export writes the events of a long range to files, and fetches them window by window.

The nouns of this folder:

    window     A half-open part of a range, such as an hour. Each window is fetched, checked and repeated on its own.
    target     The path of the files: one merged file, or a pattern that names a file per window or per run.
    order      The query, the target, the range and the options that a user gives.
    export     The plan of a run: an order, its windows, and the storage of its target.
    identity   The query, format, window length, service and dates. Exports share files only if all of these are equal.
    record     A file next to the target with the rows, bytes and hash of each exported window.
    state      A name for the target, with the end of its last run, where the next run starts.
    run        One execution of an export: it fetches the missing windows and publishes the files.
    part       The stored rows of a window, before they are in the merged file.
    task       The request for a window. A worker needs nothing else to fetch the window.
    worker     A thread, or a process in a cluster, that fetches the windows of tasks. See workers/.

`verify` hashes the files of an export again. `reconcile` compares the files with the service, and replaces windows that
have changed.
"""
