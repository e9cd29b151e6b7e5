"""What does an agent get without asking?

In come the events that hosts hand to their hooks: a session starts, a prompt is sent, a tool
touches a file. In come too the answers of the knowledge base; out come a few fenced facts in the
host's own envelope, or nothing. Nothing here ever stops or fails a host.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = [
    "command",
]
