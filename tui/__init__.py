"""The live view of the memory in a terminal: a client of the socket."""
