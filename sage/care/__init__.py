"""How does the knowledge age, and what is there to do about it?

In come the pages, the history that git tells and the usage log of a team's server; out come figures
and the work list of whoever looks after the base. Nothing is written here.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = [
    "evidence",
    "history",
    "pictures",
    "report",
    "stats",
    "usage",
    "work_list",
]
