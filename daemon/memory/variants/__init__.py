"""Readers of the files that earlier systems left behind, in every variant known of them."""
