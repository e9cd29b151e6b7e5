"""How does knowledge get to a cluster, and how is it answered from there?

In come the pages of a repository and the address of an OpenSearch cluster; out come generations
that replicas answer from, with the ranking, the scopes and the words of the embedded engine.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = ["backend", "connection", "options", "publish", "schema"]
