"""What do hosts read by themselves, and is it still what the pages say?

In come the pages of a knowledge base; out come the files of hosts made from them, byte for byte the
same from the same pages, and what of them has drifted from the pages since.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = [
    "files",
    "hosts",
    "selection",
    "texts",
]
