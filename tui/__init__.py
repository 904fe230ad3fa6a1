"""The memory live in a terminal: a client of the socket."""
