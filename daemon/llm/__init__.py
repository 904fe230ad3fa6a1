"""The language model: one port for callers, and a separate process that makes the calls."""
