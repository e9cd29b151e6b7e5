"""Where is it said?

In come documents and a query; out come ranked sections with the reasons for their rank. The index
follows the documents and is kept in the user's cache folder. Whoosh is used nowhere else.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = [
    "analysis",
    "answering",
    "catalog",
    "engine",
    "evaluation",
    "explain",
    "found",
    "fusion",
    "index",
    "index_file",
    "indexing",
    "postings",
    "protocol",
    "query",
    "ranking",
    "scoring",
    "searcher",
    "spelling",
    "update",
    "vocabulary",
]
