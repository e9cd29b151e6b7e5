"""How does a repository's knowledge get to a cluster?

In come the pages of a repository and the connection to an OpenSearch cluster; out come generations
that are checked before the alias moves to them, and the removal of those that nobody reads.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = ["plan", "publisher"]
