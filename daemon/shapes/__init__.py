"""Requests and answers, each described once: for the edge and for clients."""
