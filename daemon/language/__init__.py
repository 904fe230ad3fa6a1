"""Language without a model: what a text says that is worth keeping, and how texts compare."""
