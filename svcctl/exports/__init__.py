"""Exports. An export writes the events of a long range of dates to files. The range is fetched in time windows.

The nouns of this folder:

    window     A part of the range, such as an hour. Each window is fetched, checked and retried separately.
    target     The path of one file, or a pattern with dates that names a file for each window or each run.
    order      The query, the target, the range and the options that a user gives.
    export     The plan of a run: an order, its windows, and the storage of its target.
    identity   The query, format, window length, service, date format and time zone. Only exports with the same
               identity share files.
    record     A file next to the target. It lists each exported window, with its number of rows, its size and its hash.
    state      The target of an export and the start of the next run's range, saved under a name.
    run        One execution of an export. A run fetches the missing windows and publishes the files.
    part       A file with the rows of a window. These rows are later copied to the merged file.
    head       The heading of csv and tsv, or the columns of parquet. All windows in a file have the same head.
    task       The request for a window, with all that a worker needs to fetch the window.
    worker     A thread, or a process in a cluster, that fetches the windows of tasks. See workers/.

`verify` hashes the files of an export again. `reconcile` compares the files with the service, and replaces windows that
have changed.
"""
