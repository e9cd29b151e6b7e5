"""`make pictures`: the main screens of the page, over this repository's own knowledge base."""

import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

REPOSITORY = Path(__file__).parent.parent
FOLDER = Path(__file__).parent / "pictures"
SCREENS = {
    "search": "/?q=how+do+I+retry+safely",
    "context": "/context?task_type=coding&task=retry+a+failed+payment&budget=1200",
    "reading": "/read/practices/testing/flaky-tests",
    "health": "/health",
}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


def main() -> int:
    """Take the pictures; the exit code is 1 where there is no browser."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        print("chromium is needed to take pictures", file=sys.stderr)
        return 1
    command = [sys.executable, "-m", "sage", "page", "--root", str(REPOSITORY), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 ours
        try:
            line = server.stdout.readline() if server.stdout else ""
            _take(program, line.split()[-1])
        finally:
            server.terminate()
    return 0


def _take(program: str, address: str) -> None:
    origin = address.split("/open/")[0]
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        page.goto(address)
        for name, path in SCREENS.items():
            page.goto(origin + path)
            page.locator("[aria-busy], [data-again]").first.wait_for(state="detached")
            page.screenshot(path=FOLDER / f"{name}.png")
        # Without motion links have their last colour at once.
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        page.screenshot(path=FOLDER / "dark.png")
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
