"""How does a team's server answer everybody, each in turn?

In come HTTP requests; out come the same answers as over stdio, after access has been checked, with
health, metrics and logs beside them.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = ["run"]
