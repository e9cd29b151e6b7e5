"""The yardstick for `benchmarks.http_load`: FastMCP with one empty tool over stateless HTTP."""

import os
import sys

os.environ["FASTMCP_ENV_FILE"] = os.devnull

from fastmcp import FastMCP

server: FastMCP = FastMCP("bare", version="1")


@server.tool
def empty() -> dict[str, str]:
    """Do nothing."""
    return {}


if __name__ == "__main__":
    server.run(
        transport="http",
        host="127.0.0.1",
        port=int(sys.argv[1]),
        path="/mcp",
        stateless_http=True,
        json_response=True,
        show_banner=False,
        log_level="error",
        uvicorn_config={"access_log": False, "backlog": 2048},
    )
