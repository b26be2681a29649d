"""The response formats as streams: each module reads the body of an answer in pieces and checks that it is complete.

A format has two readers: `raw` yields the service's bytes without keep-alive padding, and `rows` yields batches of
decoded tuples. Both deliver whole rows only, and raise IncompleteResult if the body was cut or ended in an error. They
hold one block or one row in memory at a time, so results can have any size. The table in `svcctl.api.response` names
the readers of each format.
"""
