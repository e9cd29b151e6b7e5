"""The yardstick of `benchmarks.serve`: a FastMCP server with one empty tool, as advised."""

import os

os.environ["FASTMCP_ENV_FILE"] = os.devnull

from fastmcp import FastMCP

server: FastMCP = FastMCP("bare", version="1")


@server.tool
def empty() -> dict[str, str]:
    """Do nothing."""
    return {}


if __name__ == "__main__":
    server.run(transport="stdio", show_banner=False)
