"""Who may ask over the network, how much, and how fast?

In come HTTP requests; out come the same answers as over stdio, after the host, the token, its
layers and its share have been checked, with health, metrics and logs beside them.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = [
    "limits",
    "options",
    "run",
    "token_file",
]
