"""Which words does a text hold, and where do they occur?

In come texts, and rows of the terms that others made of them; out come terms and stems, the
postings of each form in plain arrays, and the vocabulary of all of them, kept in a sealed file.
Whoosh is used nowhere else.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = ["analysis", "index_file", "languages", "postings", "segments", "spelling"]
