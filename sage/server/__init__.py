"""How does a client ask over the Model Context Protocol?

In come requests of one client over stdio or of many over HTTP; out come the knowledge base's
answers as tools, resources and prompts. FastMCP is used nowhere else.
"""

# The modules that other folders may import; the rest is this folder's own.
__all__ = [
    "async_knowledge",
    "background",
    "mcp_server",
    "process",
    "stdio",
    "tools",
]
