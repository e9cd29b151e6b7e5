"""Who may ask over the network, for what, and how much?

In come a host, an origin, a bearer token and an operator's decisions; out come who asks with the
layers and sources that they may see, or a refusal that says what to do.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = ["auth", "hosts", "limits", "options", "refusals", "token_file"]
