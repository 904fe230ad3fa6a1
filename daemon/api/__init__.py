"""HTTP over the Unix socket: one module for each noun, a table of routes, and the edge itself."""
