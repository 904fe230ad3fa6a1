"""`thermocline completion`: completion for bash, zsh and fish, made from the verbs' own options."""


def run_completion(args, client):
    """."""
