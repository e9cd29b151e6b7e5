"""Is the knowledge healthy?

In come the pages as their authors wrote them; out come findings, each with its rule, its line and
what to do, and reports of them for people and for CI.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = [
    "baseline",
    "links",
    "masking",
    "pages",
    "reports",
    "rules",
    "run",
]
