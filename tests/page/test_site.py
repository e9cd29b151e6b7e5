"""Every address of the page, as a browser without scripts gets it."""

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from typing import NoReturn
from urllib.parse import parse_qs

import pytest

from sage.care.work_list import CareEvidence, Task, work_list
from sage.deadline import Deadline
from sage.errors import TimeoutExceeded
from sage.knowledge import KnowledgeBase
from sage.page import health_view
from sage.page.patience import Patience
from sage.page.site import PageRequest, Site
from tests.conftest import Base
from tests.processes import clean_environment
from tests.repositories import git

PAGES = {
    "core/principles.md": "---\ntags: [basics]\ntype: guide\nowner: platform\n---\n"
    "# Principles\n\nBe kind.\n",
    "practices/retries.md": "# Retries\n\nSee [principles](../core/principles.md).\n\n"
    "## When\n\nRetry reads.\n",
    "practices/old.md": "---\nstatus: superseded\nsuperseded_by: practices/retries\n---\n"
    "# Old\n\nRetry all.\n",
}


@pytest.fixture
def site(base: Base) -> Site:
    return Site(base.open(PAGES))


def ask(site: Site, path: str, **query: str | list[str]) -> tuple[int, str]:
    """What a browser gets, once it need not ask again."""
    values = {name: [value] if isinstance(value, str) else value for name, value in query.items()}
    while b"data-again" in (answer := site.answer(PageRequest(path, values))).body:
        continue
    return answer.status, answer.body.decode()


def test_the_first_page_lists_the_layers_and_needs_no_index(site: Site) -> None:
    status, html = ask(site, "/")
    assert status == 200
    assert 'href="/read/practices"' in html


def test_a_search_marks_the_words_and_links_the_section(site: Site) -> None:
    _, html = ask(site, "/", q="retrying reads")
    assert "<mark>Retry</mark>" in html
    assert 'href="/read/practices/retries#when"' in html


def test_a_search_that_finds_nothing_says_so(site: Site) -> None:
    _, html = ask(site, "/", q="zebra crossing")
    assert "Not here" in html


def test_why_here_names_the_words_that_gave_the_rank(site: Site) -> None:
    _, html = ask(site, "/why", q="retry reads", topic="practices/retries")
    assert "is number 1" in html


def test_why_not_names_the_word_a_page_lacks(site: Site) -> None:
    _, html = ask(site, "/why", q="retry reads", topic="core/principles")
    assert "It lacks this word" in html


def test_why_of_an_unknown_page_is_told(site: Site) -> None:
    status, html = ask(site, "/why", q="retry", topic="no/such")
    assert (status, "No page has the topic" in html) == (404, True)


def test_why_not_suggests_the_page_that_was_meant(site: Site) -> None:
    _, html = ask(site, "/why", q="retry", topic="retrys")
    assert 'Perhaps you mean <a href="/why?q=retry&amp;topic=practices%2Fretries"' in html


@pytest.mark.parametrize(
    "written", ["Principles", "principles", ".knowledge/core/principles.md", "CORE/principles#x"]
)
def test_why_not_takes_a_title_a_name_or_a_path(site: Site, written: str) -> None:
    _, html = ask(site, "/why", q="retry reads", topic=written)
    assert "<strong>Principles</strong> is not found" in html


def test_why_not_says_what_any_page_lacks_however_many_are_before_it(base: Base) -> None:
    many = {f"core/p{n:03}.md": f"# Zebra {n}\n\nzebra stripes {n}\n" for n in range(90)}
    poor = {"core/poor.md": "# Poor\n\n" + "Words of many other kinds. " * 60 + "zebra\n"}
    site = Site(base.open({**many, **poor}))
    _, html = ask(site, "/why", q="zebra stripes", topic="core/poor")
    assert "<strong>Poor</strong> is number 91 for" in html
    assert "the last page shown, Zebra" in html
    assert "It lacks this word:</strong> <code>stripes</code>, which 90 other pages hold" in html


def test_why_not_says_where_a_filtered_page_would_be(site: Site) -> None:
    _, html = ask(site, "/why", q="retry reads", topic="practices/retries", layer="core")
    assert "would be number 1 for “retry reads”" in html
    assert "without the filters" in html


def test_why_not_names_the_filter_that_a_page_does_not_pass(site: Site) -> None:
    _, html = ask(site, "/why", q="retry", topic="practices/retries", layer="core", tag="basics")
    told = re.findall(r"does not pass the filter <code>([^<]+)", html)
    assert told == ["layer core", "tag basics"]


@pytest.mark.parametrize(
    ("name", "value", "topics"),
    [
        ("type", "guide", ["core/principles"]),
        ("tag", "basics", ["core/principles"]),
        ("status", "superseded", ["practices/old"]),
        ("layer", "core", ["core/principles"]),
    ],
)
def test_a_filter_leaves_only_what_passes_it(
    base: Base, name: str, value: str, topics: list[str]
) -> None:
    site = Site(base.open({path: f"{text}\nzebra\n" for path, text in PAGES.items()}))
    _, html = ask(site, "/", q="zebra", **{name: value})
    assert re.findall(r'<h2><a href="/read/([^"#]+)', html) == topics


def test_filters_alone_list_what_passes_them_the_newest_first(base: Base) -> None:
    dated = {f"core/{n}.md": f"---\nlast_updated: 2001-0{n}-01\n---\n# P{n}\n" for n in (1, 3, 2)}
    site = Site(base.open({**PAGES, **dated}))
    _, html = ask(site, "/", layer="core")
    topics = re.findall(r'<h2><a href="/read/([^"#]+)', html)
    # A page that says nothing is as old as its file.
    assert topics == ["core/principles", "core/3", "core/2", "core/1"]
    assert "Why here?" not in html
    assert 'href="/?tag=basics"' in ask(site, "/read/core/principles")[1]
    assert "No page passes these filters" in ask(site, "/", tag="nowhere")[1]


def test_results_beyond_the_first_are_one_click_away(base: Base) -> None:
    site = Site(base.open({f"core/p{n:02}.md": f"# Zebra {n}\n\nz{n} zebra\n" for n in range(45)}))
    seen: list[str] = []
    address = "/?q=zebra"
    while address:
        query = {name: values[0] for name, values in parse_qs(address.partition("?")[2]).items()}
        _, html = ask(site, "/", **query)
        seen += re.findall(r'<h2><a href="/read/([^"#]+)', html)
        following = re.search(r'rel="next" href="([^"]+)"', html)
        address = unescape(following[1]) if following else ""
    assert sorted(set(seen)) == [f"core/p{n:02}" for n in range(45)]
    assert 'rel="prev"' in html


def test_a_folder_of_very_many_pages_is_shown_folder_by_folder(base: Base) -> None:
    many = {f"core/{n % 3}/p{n}.md": f"# P{n}\n" for n in range(120)}
    site = Site(base.open({**many, "core/own.md": "# Own\n"}))
    _, html = ask(site, "/read/core")
    assert re.findall(r'href="/read/(core/[^"]+)"', html) == [
        "core/0",
        "core/1",
        "core/2",
        "core/own",
    ]


def test_the_map_of_very_many_folders_shows_those_further_up(base: Base) -> None:
    many = {f"core/{n % 4}/f{n}/p.md": f"# P{n}\n\nwords\n" for n in range(60)}
    _, html = ask(Site(base.open(many)), "/health")
    tiles = re.findall(r'<a href="/read/([^"]+)" aria-label="[^"]+ tokens"', html)
    assert sorted(tiles) == ["core", "core/0", "core/1", "core/2", "core/3"]


def test_a_page_is_shown_before_the_index_is_there(base: Base) -> None:
    """A first search on an index that takes longer than a person waits for a page."""
    knowledge = base.open(PAGES)
    site = Site(knowledge)
    knowledge.search = _too_late  # type: ignore[method-assign]
    answer = site.answer(PageRequest("/", {"q": ["retry"]}))
    assert answer.status == 200
    assert b"The index is being built" in answer.body


def _too_late(*_: object, **__: object) -> NoReturn:
    raise TimeoutExceeded("no answer yet")


def test_a_context_shows_its_passages_and_the_call(site: Site) -> None:
    _, html = ask(site, "/context", task_type="coding", task="retry reads", budget="1000")
    assert "sage_get_context" in unescape(html)
    assert re.search(r"[\d,]+ of 1,000 tokens", html)


def test_two_task_types_stand_side_by_side(site: Site) -> None:
    _, html = ask(site, "/context", task_type="coding", compare="planning", task="retry")
    assert re.findall(r'<section class="pack" aria-label="(\w+)"', html) == ["coding", "planning"]


def test_a_forced_page_comes_first_and_takes_its_tokens(site: Site) -> None:
    _, html = ask(site, "/context", task_type="coding", task="x", force="practices/retries")
    assert "forced in" in html
    assert "Take out" in html


LONG = {
    f"practices/p{number}.md": f"# Retry {number}\n\n" + f"Retry reads of kind {number}. " * 60
    for number in range(6)
}


def test_what_was_left_out_comes_with_its_reason_and_one_click_forces_it_in(base: Base) -> None:
    site = Site(base.open(LONG))
    asked = {"task_type": "coding", "task": "retry reads", "budget": "1200"}
    _, before = ask(site, "/context", **asked)
    reason = re.search(r"does not fit: it takes ([\d,]+) tokens and ([\d,]+) are left", before)
    assert reason is not None
    assert int(reason[1]) > int(reason[2])
    link = re.search(r'href="(/context\?[^"]+)">Force in', before)
    assert link is not None
    query = parse_qs(unescape(link[1]).partition("?")[2])
    _, after = ask(site, "/context", **query)
    assert query["force"][0] in after
    assert re.search(r"(Fell out|Less of): <a href=\"/read/practices/", after)
    numbers = [one.replace(",", "") for one in re.findall(r"([\d,]+) of 1,200 tokens</", after)]
    assert int(numbers[0]) <= 1_200


def test_passages_are_those_of_the_answer_and_their_tokens_run_up(base: Base) -> None:
    knowledge = base.open(LONG)
    _, html = ask(Site(knowledge), "/context", task_type="coding", task="retry reads")
    answer = knowledge.context("coding", task="retry reads")
    shown = re.findall(r'<pre tabindex="0" aria-label="[^"]+">(.*?)</pre>', html, re.DOTALL)
    assert "\n\n".join(map(unescape, shown)) == answer["context"].strip("\n")
    running = [int(one.replace(",", "")) for one in re.findall(r"([\d,]+) so far", html)]
    assert running == sorted(running)


def test_a_context_of_mapped_folders_names_its_passages(base: Base) -> None:
    guide = base.root / "docs" / "guide.md"
    guide.parent.mkdir(parents=True)
    guide.write_text("# Guide\n\nRetry reads.\n", "utf-8")
    (base.root / "sage.yaml").write_text("layers:\n  guidelines: [docs]\n", "utf-8")
    site = Site(base.open({}))
    status, html = ask(site, "/context", task_type="coding", task="retry reads")
    assert (status, 'aria-label="guidelines/guide"' in html) == (200, True)


def test_reading_shows_outline_front_matter_and_who_links_here(site: Site) -> None:
    _, html = ask(site, "/read/core/principles")
    assert "platform" in html
    assert "/around/core/principles" in html
    _, html = ask(site, "/around/core/principles")
    assert re.search(r'Linked from</h2>\s*<ul><li><a href="/read/practices/retries"', html)


def test_a_page_that_was_replaced_leads_to_the_one_that_replaces_it(site: Site) -> None:
    _, html = ask(site, "/read/practices/old")
    assert 'replaced by <a href="/read/practices/retries">Retries</a>' in html


def test_related_pages_are_about_the_same(site: Site) -> None:
    _, html = ask(site, "/around/practices/retries")
    assert re.search(r'Related</h2>\s*<ul><li><a href="/read/practices/old"', html)


def test_a_layer_lists_its_pages(site: Site) -> None:
    _, html = ask(site, "/read/practices")
    assert 'href="/read/practices/retries"' in html


def test_an_unknown_topic_names_the_nearest(site: Site) -> None:
    status, html = ask(site, "/read/practices/retri")
    assert (status, "Perhaps one of these" in html) == (404, True)


def test_the_source_has_line_numbers_and_its_front_matter(site: Site) -> None:
    _, html = ask(site, "/raw/practices/old")
    assert '<tr id="L2">' in html
    assert "superseded_by: practices/retries" in html
    assert html.index('id="L5"') < html.index("# Old")


def test_the_history_is_told_where_git_knows_it(base: Base) -> None:
    knowledge = base.open(PAGES)
    site = Site(knowledge)
    assert "committed" not in ask(site, "/around/core/principles")[1]
    assert ask(site, "/around/core/nothing")[0] == 404
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "Say <why>"],
    ):
        subprocess.run(["git", *words], cwd=base.root, check=True)
    _, html = ask(site, "/around/core/principles")
    assert "Say &lt;why&gt;" in html
    narrowed = replace(knowledge.settings, is_narrowed=True, layers=("core",))
    _, html = ask(Site(KnowledgeBase(narrowed)), "/around/core/principles")
    assert re.search(r"<time[^>]*>[\d-]+</time> <code>", html), "a message may be about any layer"


def test_health_tells_what_is_served_and_findings_follow(site: Site) -> None:
    _, html = ask(site, "/health")
    assert "Tokens by layer and folder" in html
    status, html = ask(site, "/health/findings")
    assert (status, "Findings" in html) == (200, True)


def run_copied(base: Base, command: str, *options: str) -> None:
    """Run a command as it stands on a page."""
    program, *words = shlex.split(unescape(command))
    assert program == "sage"
    done = subprocess.run(
        [sys.executable, "-m", "sage", *words, *options, "--root", str(base.root)],
        check=False,
        capture_output=True,
        text=True,
        env=clean_environment(base.root),
    )
    assert done.returncode == 0, done.stderr


def test_what_was_asked_and_not_found_comes_with_a_command(base: Base) -> None:
    site = Site(base.open(PAGES), unanswered=lambda: [("it's $(odd)", 3)])
    _, html = ask(site, "/health")
    command = re.search(r'<code id="note-1">(.*?)</code>', html)
    assert command is not None
    run_copied(base, command[1], "--yes")
    drafted = (base.root / ".knowledge").rglob("inbox/*.md")
    assert "it's $(odd)" in next(drafted).read_text("utf-8")


AGEING = {
    "core/rule.md": "---\nreview_by: 2020-01-01\n---\n# Rule\n\n"
    "See [it](../practices/takeover.md) and `src/pay.py`.\n",
    "core/more.md": "# More\n\nThan the [rule](rule.md).\n",
    "core/alone.md": "# Alone\n\nFew words.\n",
    "practices/takeover.md": "---\nreview_by: 2020-01-01\nowner: <i>eve\n---\n# Takeover\n\n"
    "To [one](../core/alone.md).\n",
}


def commit(base: Base, day: str) -> None:
    git(base.root, "add", "-A")
    git(base.root, "commit", "-qm", "done", day=day)


def test_health_lists_what_to_do_with_the_command_that_settles_it(base: Base) -> None:
    site = Site(base.open(AGEING))
    assert 'data-load="/health/care"' in ask(site, "/health")[1]
    status, html = ask(site, "/health/care")
    assert (status, html.count("Copy the command")) == (200, 2)
    assert '<a href="/read/core/rule"><code>.knowledge/core/rule.md:1</code></a> review was' in html
    assert "owner &lt;i&gt;eve" in html
    commands = dict(re.findall(r'<code id="(task-\d+)">(.*?)</code>', html))
    assert re.findall(r'data-copy="(.*?)"', html) == list(commands)
    for command in commands.values():
        run_copied(base, command)
    base.clock.tick(1)
    assert "Nothing to do." in ask(site, "/health/care")[1]


def test_the_list_is_made_once_for_all_who_ask_and_writes_nothing(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(base.open(AGEING))
    (base.root / "src").mkdir()
    (base.root / "src/pay.py").write_text("pass\n")
    git(base.root, "init", "-q")
    commit(base, "2024-01-01")
    made: list[list[Task]] = []

    def counted(evidence: CareEvidence, kinds: Sequence[str]) -> list[Task]:
        made.append(work_list(evidence, kinds))
        return made[-1]

    monkeypatch.setattr(health_view, "work_list", counted)
    before = subprocess.check_output(["ls", "-lAR", "--full-time"], cwd=base.root)
    assert ask(site, "/health/care") == ask(site, "/health/care")
    assert len(made) == 1
    assert subprocess.check_output(["ls", "-lAR", "--full-time"], cwd=base.root) == before
    (base.root / "src/pay.py").write_text("raise\n")
    commit(base, "2025-01-01")
    assert "src/pay.py changed since 2024-01-01" in ask(site, "/health/care")[1]
    assert len(made) == 2
    narrowed = replace(base.settings(), is_narrowed=True, layers=("core",))
    html = ask(Site(KnowledgeBase(narrowed)), "/health/care")[1]
    assert html.count("Copy the command") == 1
    assert ".knowledge/core/rule.md" in html
    assert not [
        word for word in ("takeover", "owner", "src/pay.py changed", "alone") if word in html
    ]


def test_the_list_names_no_page_of_a_hidden_source(base: Base) -> None:
    same = (
        "\n## Keys\n\nEvery request that changes something carries an idempotency key, and the "
        "server keeps the answer of the first one for a day so that a second gets the same.\n"
    )
    base.write({"sage.yaml": "sources: {company: vendor/company}"})
    theirs = base.root / "vendor/company/.knowledge/core/theirs.md"
    theirs.parent.mkdir(parents=True)
    theirs.write_text(f"# Theirs\n{same}")
    knowledge = base.open({"core/ours.md": f"# Ours\n{same}"})
    assert "sage supersede core/ours core/theirs" in ask(Site(knowledge), "/health/care")[1]
    narrowed = replace(knowledge.settings, is_narrowed=True, seen_sources=("own",))
    assert "Nothing to do." in ask(Site(KnowledgeBase(narrowed)), "/health/care")[1]


def test_an_edit_changes_the_version_that_the_open_page_watches(base: Base) -> None:
    site = Site(base.open(PAGES))
    before = ask(site, "/live")[1]
    base.clock.tick(1)
    base.write({"core/new.md": "# New\n"})
    assert ask(site, "/live")[1] != before


def test_edit_links_are_made_from_the_teams_template(base: Base) -> None:
    site = Site(base.open(PAGES, page__edit_url="https://git.example/edit/main/{path}"))
    _, html = ask(site, "/read/core/principles")
    assert 'href="https://git.example/edit/main/.knowledge/core/principles.md"' in html


def test_every_answer_forbids_what_is_not_ours(site: Site) -> None:
    headers = site.answer(PageRequest("/")).all_headers
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]


@pytest.mark.parametrize("number", ["", "x", "-1", "9" * 5000, "²", "1e3"])
def test_a_budget_that_is_no_number_is_the_default(site: Site, number: str) -> None:
    assert (
        'name="budget" min="100" max="200000" value="4000"'
        in ask(site, "/context", budget=number)[1]
    )


def test_an_answer_that_was_cut_short_is_asked_for_again(base: Base) -> None:
    """On a busy machine the index is ready, and the moment that a first page waits is over."""
    knowledge = base.open(PAGES)
    knowledge.search("retry")
    given: list[Deadline] = []

    def cut_short(deadline: Deadline) -> str:
        given.append(deadline)
        if len(given) == 1:
            deadline.cancel()
        return "cut" if deadline.expired else "whole"

    assert Patience(knowledge).ask(cut_short) == "whole"
    assert len(given) == 2
