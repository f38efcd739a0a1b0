"""Quorate beside its peers: each runs as three processes on loopback, in turn, under the same load."""
