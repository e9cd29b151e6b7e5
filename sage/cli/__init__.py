"""What does a person type, and what is printed?

In come arguments and the environment; out come answers on stdout, messages on stderr and an exit
code.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = [
    "main",
]
