"""The command line: verbs by what they are about, and the declaration of each."""
