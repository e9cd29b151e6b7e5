"""How does knowledge grow, age and stay in order?

In come a sentence somebody learned, or the id of a page; out come a drafted page, a page with
another status and every other byte as it was, and lists of what is alike or belongs together.
Only commands write, only below the layers; a person or an agent commits.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = [
    "changes",
    "draft",
    "duplicates",
    "front_matter_edit",
    "known",
    "links",
    "related",
]
