"""The command line: one module per verb, each a thin client of the socket."""
