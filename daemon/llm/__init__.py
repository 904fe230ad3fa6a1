"""The language model: asked through one port, called by a process of its own."""
