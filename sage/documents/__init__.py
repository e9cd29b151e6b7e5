"""What is there, and what does it say?

In come the files below a root; out come documents cut into sections, each with its topic, and
problems for everything that is not served. Every path is opened here, without following links out.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = [
    "boilerplate",
    "containment",
    "document",
    "exported",
    "files",
    "front_matter",
    "languages",
    "library",
    "markdown",
    "nearest",
    "places",
    "plain_text",
    "problems",
    "scopes",
    "source_roots",
    "titles",
    "topics",
    "unserved",
    "walk",
]
