"""The page in a real browser: every screen, by keys, narrow, dark, hostile, while it changes."""

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

import pytest

from sage.access.token_file import TokenFile
from tests.clients.test_node import npm_install
from tests.httpkit import serving
from tests.processes import clean_environment, give_up

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Response, Route

AXE = Path(__file__).parent / "axe"
# The browser must not look for anything outside this machine.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SCREENS = ["/", "/?q=retry+reads", "/context?task_type=coding&task=retry+reads", "/health"]
SCREENS += ["/read/practices/retries", "/raw/practices/retries", "/read/practices", "/nowhere"]
SCREENS += ["/why?q=retry&topic=practices%2Fretries", "/health/findings", "/health/care"]
SCREENS += [
    "/around/practices/retries",
    "/context?task_type=coding&compare=planning&task=retry+reads",
]
WAIT_MS = 120_000
# One server is looked at by every test of this file, on a busy machine for many minutes.
LONGEST_SECONDS = 3_600

PAGES = {
    "core/principles.md": "---\ntags: [basics]\n---\n# Principles\n\nBe kind to whoever reads.\n",
    "guidelines/errors.md": "# Errors\n\nSay what is wrong.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "practices/retries.md": "# Retries\n\nSee [principles](../core/principles.md).\n\n"
    "## When\n\nRetry reads, never writes.\n\n```python\nretry(read)\n```\n",
    "practices/old.md": "---\nstatus: superseded\nsuperseded_by: practices/retries\n---\n"
    "# Old retries\n\nRetry everything.\n",
}


def write(root: Path, pages: dict[str, str]) -> None:
    for name, text in pages.items():
        path = root / ".knowledge" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


@contextmanager
def looking_at(root: Path) -> Iterator[str]:
    """`sage page` as a real process; the address that works once."""
    command = [sys.executable, "-m", "sage", "page", "--root", str(root), "--no-browser"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment(root)
    )
    last = threading.Timer(LONGEST_SECONDS, process.kill)
    last.start()
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().decode()
            assert "http://" in line, process.stderr.read().decode() if process.stderr else ""
            yield line.split()[-1]
        finally:
            last.cancel()
            process.kill()


@pytest.fixture(scope="module")
def chromium() -> Iterator["Browser"]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        give_up("playwright is needed for the tests in a browser: pip install -e '.[dev]'")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        give_up("chromium is needed for the tests in a browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    root = tmp_path_factory.mktemp("page")
    write(root, PAGES)
    with looking_at(root) as address:
        yield root, address


@pytest.fixture(scope="module")
def signed_in(
    chromium: "Browser", served: tuple[Path, str]
) -> Iterator[tuple["BrowserContext", str]]:
    """A browser that followed the address, and the server's origin."""
    context = chromium.new_context()
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.goto(served[1])
    origin = served[1].split("/open/")[0]
    assert page.url.startswith(f"{origin}/")
    page.close()
    yield context, origin
    context.close()


class Watched:
    """A page whose errors and requests are kept."""

    def __init__(self, context: "BrowserContext") -> None:
        self.page: Page = context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "console",
            lambda message: self.errors.append(message.text) if message.type == "error" else None,
        )
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: self.errors.append(f"dialog {dialog.message}"))


@pytest.fixture
def watched(signed_in: tuple["BrowserContext", str]) -> Iterator[tuple[Watched, str]]:
    watched = Watched(signed_in[0])
    yield watched, signed_in[1]
    watched.page.close()


# What a page still waits for: parts that follow it, and an index that is being built.
WAITING = "[aria-busy], [data-again]"
# What moved so far. The navigation is told with it, so there is an answer when nothing moved.
SHIFT = """new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
  const watching = new PerformanceObserver(list => done(
    list.getEntriesByType("layout-shift").reduce((sum, one) => sum + one.value, 0)));
  watching.observe({type: "layout-shift", buffered: true});
  watching.observe({type: "navigation", buffered: true});
})))"""


def look(page: "Page", address: str) -> None:
    """Load a page and everything that follows it."""
    page.goto(address)
    settle(page)


def settle(page: "Page") -> None:
    # Never wait_for_function: what it polls is evaluated, which the page's policy forbids.
    page.locator(WAITING).first.wait_for(state="detached")


def look_at_search(page: "Page", address: str) -> None:
    """A page of results, once the browser has put the cursor into its field."""
    look(page, address)
    page.locator("#q:focus").wait_for()


@pytest.fixture(scope="module")
def axe() -> str:
    npm_install(AXE, "--ignore-scripts")
    return (AXE / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_loads_little_without_errors_and_without_jumping(
    watched: tuple[Watched, str], screen: str, axe: str
) -> None:
    """One load of each screen, and everything that must be true of it."""
    one, origin = watched
    answers: list[Response] = []
    one.page.on("response", lambda answer: answers.append(answer))
    one.page.set_viewport_size({"width": 1280, "height": 800})
    look(one.page, origin + screen)
    assert one.page.evaluate(SHIFT) < 0.1
    assert [error for error in one.errors if "404" not in error] == []
    assert all(url.startswith(origin) for url in one.requests)
    assert sum(len(answer.body()) for answer in answers if answer.ok) <= 100_000
    assert _serious(one.page, axe) == []
    for width in (320, 768, 3840):
        one.page.set_viewport_size({"width": width, "height": 800})
        assert one.page.evaluate("document.documentElement.scrollWidth") <= width


def _serious(page: "Page", axe: str) -> list[tuple[str, str, list[str]]]:
    """What axe calls serious, in light and in dark."""
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    serious: list[tuple[str, str, list[str]]] = []
    for scheme in schemes:
        # Links change their colour in steps: without motion axe sees the last one only.
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found = page.evaluate(f"async () => {{ {axe}; return await axe.run(); }}")
        serious += [
            (scheme, violation["id"], [node["html"] for node in violation["nodes"]])
            for violation in found["violations"]
            if violation["impact"] in ("serious", "critical")
        ]
    page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    return serious


def test_tab_walks_from_the_top_to_the_results(watched: tuple[Watched, str]) -> None:
    one, origin = watched
    look_at_search(one.page, f"{origin}/?q=retry")
    one.page.locator(".skip").focus()
    walked = []
    for _ in range(16):
        one.page.keyboard.press("Tab")
        walked.append(
            one.page.evaluate("document.activeElement.name || document.activeElement.innerText")
        )
    order = ["SAGE", "Search", "Context", "Health", "q", "Search", "layer"]
    assert walked[: len(order)] == order
    assert walked.index("type") < walked.index("tag") < walked.index("status")
    assert any(title in walked for title in ("Retries", "Old retries"))


def test_results_follow_the_typing_and_the_address_can_be_shared(
    watched: tuple[Watched, str],
) -> None:
    one, origin = watched
    look_at_search(one.page, f"{origin}/")
    one.page.keyboard.type("retry reads")
    one.page.wait_for_url(re.compile(r"\?q=retry\+reads$"))
    one.page.wait_for_selector(".results li")
    look(one.page, one.page.url)
    assert one.page.locator(".results h2 a").first.inner_text() == "Retries"


def test_what_cannot_be_shown_now_is_told_in_the_place_of_results(
    watched: tuple[Watched, str],
) -> None:
    one, origin = watched
    look(one.page, f"{origin}/")
    words = "<p>the cluster did not answer in time</p>"
    one.page.route(
        re.compile(r"q=retry.*part=1"),
        lambda route: route.fulfill(status=503, content_type="text/html", body=words),
    )
    one.page.locator("#q").fill("retry")
    one.page.wait_for_selector("text=the cluster did not answer in time")


def test_an_edit_while_somebody_types_does_not_bring_back_what_was_shown(
    watched: tuple[Watched, str], served: tuple[Path, str]
) -> None:
    one, origin = watched
    look(one.page, f"{origin}/")
    asked = re.compile(r"q=retry.*part=1")
    held: list[Route] = []

    def hold_the_first(route: "Route") -> None:
        if held:
            route.continue_()
        held.append(route)

    one.page.route(asked, hold_the_first)
    with one.page.expect_request(asked):
        one.page.locator("#q").fill("retry reads")
    with one.page.expect_request(asked):
        write(served[0], {"practices/typed.md": "# Typed\n\nWritten meanwhile.\n"})
    held[0].continue_()
    one.page.wait_for_url(re.compile(r"\?q=retry\+reads$"))
    assert one.page.locator("#q").input_value() == "retry reads"
    (served[0] / ".knowledge" / "practices" / "typed.md").unlink()


def test_keys_reach_the_field_the_results_and_the_page(watched: tuple[Watched, str]) -> None:
    one, origin = watched
    look_at_search(one.page, f"{origin}/?q=retry")
    one.page.evaluate("document.activeElement.blur()")
    one.page.keyboard.press("/")
    assert one.page.evaluate("document.activeElement.name") == "q"
    one.page.keyboard.press("ArrowDown")
    one.page.wait_for_selector(".results li.chosen")
    one.page.keyboard.press("Enter")
    one.page.wait_for_url(re.compile("/read/practices/"))
    one.page.keyboard.press("Control+k")
    assert one.page.evaluate("document.activeElement.name") == "q"


def test_why_here_opens_below_the_result(watched: tuple[Watched, str]) -> None:
    one, origin = watched
    look(one.page, f"{origin}/?q=retry")
    one.page.locator("[data-why]").first.click()
    one.page.wait_for_selector(".why-told")
    assert "is number 1" in one.page.locator(".why-told").inner_text()


def test_why_not_opens_below_the_results(watched: tuple[Watched, str]) -> None:
    one, origin = watched
    look(one.page, f"{origin}/?q=retry")
    one.page.locator("#expected").fill("principals")
    one.page.locator("#expected").press("Enter")
    # What was meant is one click away.
    one.page.locator(".why-not .why-told a").click()
    one.page.wait_for_selector("text=It lacks this word")
    assert one.page.locator(".why-told").count() == 1
    assert "/?q=retry" in one.page.url


def test_an_edit_elsewhere_leaves_what_was_chosen_opened_and_written(
    watched: tuple[Watched, str], served: tuple[Path, str]
) -> None:
    one, origin = watched
    look_at_search(one.page, f"{origin}/?q=retry")
    one.page.keyboard.press("ArrowDown")
    chosen = one.page.locator(".results li.chosen h2 a").inner_text()
    one.page.locator("[data-why]").first.click()
    one.page.locator("article .why-told").wait_for()
    one.page.locator("#expected").fill("half a na")
    one.page.locator(".results").evaluate("one => { one.dataset.old = 1 }")
    # Another page changes the score of every result.
    write(served[0], {"core/elsewhere.md": "# Elsewhere\n\nA walrus.\n"})
    one.page.locator(".results:not([data-old]) article .why-told").wait_for()
    assert one.page.locator(".results li.chosen h2 a").inner_text() == chosen
    assert one.page.locator("#expected:focus").input_value() == "half a na"
    (served[0] / ".knowledge" / "core" / "elsewhere.md").unlink()


def test_filters_alone_list_pages(watched: tuple[Watched, str]) -> None:
    one, origin = watched
    look(one.page, f"{origin}/")
    one.page.locator("input[name=tag]").fill("basics")
    one.page.wait_for_url(re.compile(r"\?tag=basics$"))
    one.page.wait_for_selector(".results li")
    assert one.page.locator(".results h2 a").all_inner_texts() == ["Principles"]


@pytest.mark.parametrize("address", ["/read/practices/live", "/raw/practices/live", "/?q=narwhal"])
def test_an_edit_appears_on_the_open_page_without_a_reload(
    watched: tuple[Watched, str], served: tuple[Path, str], address: str
) -> None:
    one, origin = watched
    write(served[0], {"practices/live.md": "# Live narwhal\n\nBefore.\n"})
    one.page.goto(origin + address)
    one.page.wait_for_selector("text=Before.")
    one.page.evaluate("window.__stayed = true")
    write(served[0], {"practices/live.md": "# Live narwhal\n\nAfter the edit.\n"})
    one.page.wait_for_selector("text=After the edit.")
    assert one.page.evaluate("window.__stayed === true")


def test_a_budget_moves_the_preview_and_what_was_left_out_is_forced_in(
    watched: tuple[Watched, str], served: tuple[Path, str]
) -> None:
    one, origin = watched
    long = {f"practices/long{n}.md": f"# Long {n}\n\n" + f"Walrus {n} dives. " * 90 for n in "abc"}
    write(served[0], long)
    look(one.page, f"{origin}/context?task_type=coding&task=walrus+dives&budget=4000")
    # A file is served once it is quiet.
    for name in "abc":
        one.page.wait_for_selector(f".passage >> text=practices/long{name}")
    before = one.page.locator(".passage").count()
    one.page.locator("#slider").fill("750")
    one.page.wait_for_url(re.compile("budget=750"))
    one.page.wait_for_selector("text=of 750 tokens")
    assert one.page.locator("#budget").input_value() == "750"
    assert one.page.locator(".passage").count() < before
    one.page.locator("text=Force in").first.click()
    one.page.wait_for_selector(".passage.forced")
    one.page.locator("text=Take out").first.click()
    one.page.locator(".passage.forced").first.wait_for(state="detached")
    for name in long:
        (served[0] / ".knowledge" / name).unlink()


def test_a_call_is_copied_as_an_agent_makes_it(
    signed_in: tuple["BrowserContext", str], watched: tuple[Watched, str]
) -> None:
    one, origin = watched
    signed_in[0].grant_permissions(["clipboard-read", "clipboard-write"])
    look(one.page, f"{origin}/context?task_type=coding&task=retry+reads&budget=1000")
    # The button says so for a moment only, which a busy machine may miss.
    one.page.evaluate(
        "new MutationObserver(([first]) => {"
        "  document.body.dataset.said ??= first.target.textContent;"
        "}).observe(document.querySelector('[data-copy]'), {childList: true})"
    )
    one.page.locator("[data-copy]").first.click()
    one.page.wait_for_selector("body[data-said=Copied]")
    call = json.loads(one.page.evaluate("navigator.clipboard.readText()"))
    arguments = {"task_type": "coding", "token_budget": 1000, "task": "retry reads"}
    assert call == {"tool": "sage_get_context", "arguments": arguments}


def test_paper_shows_the_text_and_nothing_around_it(watched: tuple[Watched, str]) -> None:
    one, origin = watched
    look(one.page, f"{origin}/read/practices/retries")
    one.page.emulate_media(media="print")
    assert one.page.locator("article.text").is_visible()
    for around in ("header.top", "footer", ".about", ".outline"):
        assert not one.page.locator(around).is_visible()


def test_a_token_for_one_layer_signs_in_and_sees_no_other(
    chromium: "Browser", tmp_path: Path
) -> None:
    tokens = TokenFile(tmp_path / "private" / "tokens.json")
    token = tokens.create("narrow", ["core"])
    root = tmp_path / "repo"
    write(root, PAGES)
    with serving(root, tokens=tokens.path, require_token=True, page=True) as client:
        context = chromium.new_context()
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        origin = f"http://127.0.0.1:{client.port}"
        page.goto(f"{origin}/?q=retry")
        page.locator("#token").fill("sage_wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("[role=alert]")
        page.locator("#token").fill(token)
        page.keyboard.press("Enter")
        # Whoever was sent a link sees what it leads to.
        page.wait_for_url(f"{origin}/?q=retry")
        assert page.locator(".results").count() == 0
        for address in ("/", "/health", "/read/practices/retries", "/read/core"):
            look(page, origin + address)
            assert "Retries" not in page.content()
        assert [one["httpOnly"] for one in context.cookies()] == [True]
        page.locator("text=Sign out").click()
        page.wait_for_selector("#token")
        context.close()


def test_without_scripts_reading_and_searching_work(
    chromium: "Browser", signed_in: tuple["BrowserContext", str]
) -> None:
    context, origin = signed_in
    plain = chromium.new_context(java_script_enabled=False)
    plain.set_default_timeout(WAIT_MS)
    plain.add_cookies(context.cookies())  # type: ignore[arg-type]
    page = plain.new_page()
    page.goto(f"{origin}/")
    page.locator("main input[name=q]").fill("retry reads")
    page.locator("main form button").first.click()
    page.locator(".results h2 a").first.click()
    assert "Retry reads" in page.locator("article.text").inner_text()
    plain.close()


def test_the_address_works_once(chromium: "Browser", served: tuple[Path, str]) -> None:
    context = chromium.new_context()
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    answer = page.goto(served[1])
    assert answer is not None
    assert answer.status == 401
    context.close()


# What would run, each with a place for the code.
VECTORS = [
    "<script>{}</script>",
    "<img src=x onerror={}>",
    "<svg onload={}>",
    "<svg><script>{}</script></svg>",
    "<svg><a xlink:href=javascript:{}><text>x</text></a></svg>",
    "<svg><animate onbegin={} attributeName=x dur=1s>",
    "<math href=javascript:{}>x</math>",
    "<iframe srcdoc='<script>{}</script>'>",
    "<iframe src=javascript:{}>",
    "<object data=javascript:{}>",
    "<embed src=javascript:{}>",
    "<a href=javascript:{}>x</a>",
    "<a href='data:text/html,<script>{}</script>'>x</a>",
    "<details open ontoggle={}>",
    "<body onload={}>",
    "<video><source onerror={}></video>",
    "<audio src=x onerror={}>",
    "<input autofocus onfocus={}>",
    "<select autofocus onfocus={}>",
    "<marquee onstart={}>",
    "<form action=javascript:{}><button>x",
    "<button formaction=javascript:{}>x</button>",
    "<isindex action=javascript:{} type=image>",
    "<meta http-equiv=refresh content='0;url=javascript:{}'>",
    "<base href=//evil.example/>{}",
    "<link rel=stylesheet href=javascript:{}>",
    "<style>@import 'javascript:{}'</style>",
    "<div style='background:url(javascript:{})'>x</div>",
    "<template><script>{}</script></template>",
    "<noscript><p title='</noscript><script>{}</script>'>",
    "<!--><script>{}</script>-->",
    "<![CDATA[<script>{}</script>]]>",
    "[x](javascript:{})",
    "[x](JaVaScRiPt:{})",
    "[x](java&#115;cript:{})",
    "[x]( javascript:{})",
    "[x](data:text/html;base64,{})",
    "![x](x 'onerror={}')",
    "[x]: javascript:{}",
    "<javascript:{}>",
]
# What such text would have to break out of first.
OUTSIDE = ["", '">', "'>", "</title>", "</textarea></option></code></pre>"]
CODE = "window.__broken=1"
PAYLOADS = [before + vector.format(CODE) for vector in VECTORS for before in OUTSIDE]
PER_PAGE = 10
ODD_NAMES = [
    "<img src=x onerror=window.__broken=1>",
    "x' onmouseover='window.__broken=1",
    "{{7*7}}",
]


def hostile_pages() -> dict[str, str]:
    """Each payload as title, heading, tag, field, cell, code and text of some page."""
    pages = {}
    for start in range(0, len(PAYLOADS), PER_PAGE):
        texts = PAYLOADS[start : start + PER_PAGE]
        quoted = ["'" + text.replace("'", "''") + "'" for text in texts]
        names = ("title", "type", "owner", "summary", "status", "superseded_by", "source")
        front = [f"{name}: {text}" for name, text in zip(names, quoted, strict=False)]
        front += [f"odd{number}: {text}" for number, text in enumerate(quoted)]
        body = [
            f"## {text}\n\n{text}\n\n| {text} |\n|---|\n| {text} |\n\n```{text}\n{text}\n```\n\n"
            for text in texts
        ]
        front.append(f"tags: [{', '.join(quoted)}]")
        head = "\n".join(("---", *front, "---", f"# {texts[0]}", "", "hostile", "", ""))
        pages[f"practices/h{start}.md"] = head + "".join(body)
    for name in ODD_NAMES:
        pages[f"practices/{name}.md"] = "# Name\n\nhostile\n"
    cells = "| x " * 400
    pages["practices/huge.md"] = f"# Huge\n\n{cells}|\n{'|---' * 400}|\n" + f"{cells}|\n" * 40
    return pages


def hostile_addresses() -> list[str]:
    """Every page and list, and each payload as a value of an address."""
    addresses = [f"/read/practices/h{n}" for n in range(0, len(PAYLOADS), PER_PAGE)]
    addresses += [f"/read/practices/{quote(name)}" for name in ODD_NAMES]
    addresses += ["/?q=hostile", "/health", "/health/findings", "/health/care"]
    addresses += ["/read/practices", "/choices"]
    addresses += ["/raw/practices/h0", "/around/practices/h0", "/read/practices/huge"]
    addresses += ["/context?task_type=coding&task=hostile&budget=8000"]
    for start in range(0, len(PAYLOADS), 5):
        a, b, c, d, e = map(quote, PAYLOADS[start : start + 5])
        addresses.append(f"/?q={a}&tag={b}&type={c}&layer={d}&status={e}")
        if start % 15 == 0:
            addresses.append(f"/context?task_type=coding&task={b}&files={c}&language={d}&force={e}")
            addresses.append(f"/why?q={e}&topic={a}")
    return [*addresses, *(f"/read/{quote(text, safe='')}" for text in PAYLOADS[::11])]


def test_no_script_of_a_page_a_name_or_a_query_runs(chromium: "Browser", tmp_path: Path) -> None:
    assert len(set(PAYLOADS)) == 200
    write(tmp_path, hostile_pages())
    with looking_at(tmp_path) as address:
        context = chromium.new_context()
        context.set_default_timeout(WAIT_MS)
        watched = Watched(context)
        page, origin = watched.page, address.split("/open/")[0]
        page.goto(address)
        for one in hostile_addresses():
            look(page, origin + one)
            ran = page.evaluate("window.__broken !== undefined || document.querySelector('base')")
            assert not ran, one
            assert page.url.startswith(origin), one
        # Links of hostile pages lead to the web or to pages, and nothing else is there to click.
        look(page, f"{origin}/read/practices/h{len(PAYLOADS) - PER_PAGE}")
        links = page.evaluate("[...document.links].map(one => one.protocol)")
        assert set(links) <= {"http:", "https:"}
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert [error for error in watched.errors if error.startswith("dialog")] == []
        assert all(url.startswith(origin) for url in watched.requests)
        context.close()
