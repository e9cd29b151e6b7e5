"""What does this task need?

In come documents, their ranking for a task, and a recipe; out comes one text within a token budget
that names its sources.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = [
    "builder",
    "explain",
    "passages",
    "recipes",
    "repository",
]
