"""What does a person see?

In come a knowledge base and the address of a page; out come HTML, a style sheet and a script,
ready to be sent. Who may look, and how it is sent, is decided elsewhere.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = ["site"]
