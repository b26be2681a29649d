"""The readers of the response formats. A reader reads an answer in pieces, and checks that the answer is complete.

Each format has a function `raw`, which yields the service's bytes without keep-alive padding. This padding consists of
blanks or empty lines, which a service sends to keep a connection open. Most formats also have a function `rows`, which
yields batches of decoded tuples. Both functions deliver whole rows only. Both functions raise IncompleteResult if the
body was cut off or ended in an error. Only one block or one row is in memory at a time, so results can have any size.
The table MODES in `svcctl.api.response` contains the readers of each format.
"""
