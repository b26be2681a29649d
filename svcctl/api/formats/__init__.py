"""The response formats as streams: each module takes the body of an answer in pieces and proves it whole as it goes.

A format has two readings: `raw`, the service's own bytes without keep-alive padding, and `rows`, decoded tuples in
batches. Both hand on whole rows only, and end in IncompleteResult when the body was cut or ended in an error. They
hold one block or one row at a time, whatever the size of the result. Which mode uses which is the table in
`svcctl.api.events`.
"""
