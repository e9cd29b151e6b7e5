"""How does knowledge lie in a cluster, and how is it answered from there?

In come the address of an OpenSearch cluster and the generations that were published there; out come
answers with the ranking, the scopes and the words of the embedded engine.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = [
    "backend",
    "connection",
    "generations",
    "node_errors",
    "options",
    "page_record",
    "requests",
    "schema",
    "source_settings",
    "vectors",
    "words",
]
