"""The response formats as streams: each module reads the body of an answer in pieces and checks that it is complete.

A format has two readers: `raw` yields the service's bytes without keep-alive padding, `rows` yields decoded tuples in
batches. Both deliver whole rows only, and raise IncompleteResult when the body was cut or ended in an error. They hold
one block or one row at a time, for results of any size. The table in `svcctl.api.response` names the readers of a mode.
"""
