"""HTTP over the Unix socket: connections, requests, dispatch to operations, streams."""
