"""What means the same, in whatever words?

In come the sections that the search knows, and a text; out come the sections that are near it in
meaning. Models are data that we read ourselves; nothing here is imported unless the extra
`semantic` is installed and `search.semantic` is not off.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = ["meaning", "models", "nearness", "published"]
