"""The tasks of a model, each with rules that are used without one."""
