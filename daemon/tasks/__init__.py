"""The tasks of a model, each with rules to use without a model."""
