"""Where is it said?

In come documents and a query; out come ranked sections with the reasons for their rank. The index
follows the documents and is kept in the user's cache folder.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = [
    "answering",
    "catalog",
    "engine",
    "evaluation",
    "explain",
    "fusion",
    "index",
    "index_reader",
    "indexing",
    "protocol",
    "query",
    "ranking",
    "scoring",
    "searcher",
    "sections",
    "synonyms",
    "update",
]
