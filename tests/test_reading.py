"""What a topic names, as `sage_get_knowledge` is asked for it."""

import re
from typing import Any

import pytest

from sage.deadline import Deadline
from sage.documents.titles import KnownNames, Titles
from sage.errors import NotFound
from sage.knowledge import KnowledgeBase
from tests.conftest import Base

SITE = {
    "practices/concepts/_index.md": "# Concepts\n\n## Before you begin\n\nIndex.\n",
    "practices/concepts/workloads/pods.md": (
        "---\ntitle: Pods\n---\n## Pod lifetime {#pod-lifecycle}\n\nText.\n\n"
        "## Before you begin\n\nPods.\n"
    ),
    "practices/concepts/workloads/index.mdx.md": "# Odd\n",
    "practices/tasks/debug/README.md": "# Debugging\n",
    "practices/tasks/run it.md": "# Run it\n",
    "guidelines/pods.md": "# Our pods\n",
    "core/only.md": "# The only one\n\n## A heading\n\nText.\n",
}


def paths(knowledge: KnowledgeBase, topic: str) -> list[str]:
    content = knowledge.get("all", topic)["content"]
    return re.findall(r"^<!-- \.knowledge/(\S.*?) -->$", content, re.MULTILINE)


@pytest.mark.parametrize(
    ("link", "found"),
    [
        ("/docs/concepts/workloads/pods/", "practices/concepts/workloads/pods.md"),
        (
            "/docs/concepts/workloads/pods/#pod-lifecycle",
            "practices/concepts/workloads/pods.md:4-7",
        ),
        (
            "https://example.com/en/docs/concepts/workloads/pods#pod-lifecycle",
            "practices/concepts/workloads/pods.md:4-7",
        ),
        ("../workloads/pods.md#{#pod-lifecycle}", "practices/concepts/workloads/pods.md:4-7"),
        ("workloads/pods#pod-lifetime", "practices/concepts/workloads/pods.md:4-7"),
        ("../../concepts/workloads/pods.html", "practices/concepts/workloads/pods.md"),
        ("/docs/concepts/", "practices/concepts/_index.md"),
        ("/docs/concepts/#before-you-begin", "practices/concepts/_index.md:3-5"),
        ("./debug/", "practices/tasks/debug/README.md"),
        ("../tasks/run%20it.md", "practices/tasks/run it.md"),
        ("../tasks/run it.md?plain=1", "practices/tasks/run it.md"),
        ("[[workloads/pods]]", "practices/concepts/workloads/pods.md"),
        ("[[only|the words shown]]", "core/only.md"),
        ("[[only#A heading]]", "core/only.md:3-5"),
        ("![[The only one]]", "core/only.md"),
        ("[a link](../core/only.md#a-heading)", "core/only.md:3-5"),
        ("[a link](<../core/only.md> 'title')", "core/only.md"),
        ("<only.md>", "core/only.md"),
        ("`core/only.md`", "core/only.md"),
        ('{{< ref "only.md#a-heading" >}}', "core/only.md:3-5"),
        ('{{% relref "/core/only" %}}', "core/only.md"),
        (".knowledge/core/only.md:4-5", "core/only.md:3-5"),
        ("core/only.md#L4", "core/only.md:3-5"),
    ],
)
def test_link_copied_from_a_page_is_a_topic(base: Base, link: str, found: str) -> None:
    assert paths(base.open(SITE), link) == [found]


@pytest.mark.parametrize(
    "topic",
    [
        "{#pod-lifecycle}",
        "#pod-lifecycle",
        "## Pod lifetime {#pod-lifecycle}",
        "[see there](#pod-lifecycle)",
    ],
)
def test_id_of_a_heading_is_a_topic_whatever_page_has_it(base: Base, topic: str) -> None:
    assert paths(base.open(SITE), topic) == ["practices/concepts/workloads/pods.md:4-7"]


def test_id_that_several_pages_have_means_all_of_them(base: Base) -> None:
    assert len(paths(base.open(SITE), "{#before-you-begin}")) == 2


def test_heading_in_code_has_no_id(base: Base) -> None:
    knowledge = base.open({"core/a.md": "# A\n\n```sh\n## set up\n```\n"})
    with pytest.raises(NotFound, match="nothing is called"):
        knowledge.get("all", "{#set-up}")


def test_unknown_topic_names_headings_that_are_nearer_than_any_page(base: Base) -> None:
    pages = {
        "core/http.md": "# HTTP\n\n## Retries {#again}\n\nThree.\n",
        "core/retries-and-idempotency.md": "# Doing it twice\n",
    }
    with pytest.raises(NotFound) as caught:
        base.open(pages).get("all", "retry")
    assert str(caught.value).endswith("nearest: core/retries-and-idempotency, core/http#again")


def test_heading_that_is_only_a_little_alike_is_not_named(base: Base) -> None:
    knowledge = base.open({"core/a.md": "# A\n\n## Directories\n\nText.\n"})
    with pytest.raises(NotFound, match=r"^nothing is called 'retries'; find it with"):
        knowledge.get("all", "retries")


def test_link_with_a_bare_name_means_every_page_of_that_name(base: Base) -> None:
    assert paths(base.open(SITE), "[[pods]]") == [
        "guidelines/pods.md",
        "practices/concepts/workloads/pods.md",
    ]


@pytest.mark.parametrize("link", ["/blog/2020/pods", "[[nowhere]]", "../nowhere/else.md", "/x/#y"])
def test_link_that_leads_nowhere_is_not_found(base: Base, link: str) -> None:
    with pytest.raises(NotFound, match="nothing is called"):
        base.open(SITE).get("all", link)


def test_unknown_heading_names_the_nearest_of_that_page(base: Base) -> None:
    with pytest.raises(NotFound) as caught:
        base.open(SITE).get("all", "workloads/pods#before-we-begin")
    assert str(caught.value).startswith(
        "practices/concepts/workloads/pods has no heading 'before-we-begin'; "
        "nearest: practices/concepts/workloads/pods#before-you-begin"
    )


def test_unknown_topic_names_titles_too(base: Base) -> None:
    with pytest.raises(
        NotFound, match=r"nothing is called 'debuging'; nearest: practices/tasks/debug/README"
    ):
        base.open(SITE).get("all", "debuging")


@pytest.mark.parametrize("topic", ["core/odd", "odd", "core/odd.md", "core/odd#part"])
def test_page_that_is_left_out_is_named_with_the_reason(base: Base, topic: str) -> None:
    knowledge = base.open({"core/a.md": "# A\n"})
    base.path("core/odd.md").write_bytes(b"# Odd\0\n")
    base.clock.tick(60)
    with pytest.raises(NotFound, match=r"core/odd\.md: left out: it holds NUL bytes") as caught:
        knowledge.get("all", topic)
    assert "nearest" not in str(caught.value)


def test_title_of_a_page_that_is_served_goes_before_a_page_that_is_left_out(base: Base) -> None:
    knowledge = base.open({"core/a.md": "# Odd\n\nText.\n"})
    base.path("core/odd.md").write_bytes(b"\xff\n")
    base.clock.tick(60)
    assert "Text." in knowledge.get("all", "odd")["content"]


def test_unknown_name_is_not_found_although_not_every_title_was_read(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    knowledge = base.open(SITE)
    read = Titles._read

    def read_slowly(titles: Titles, *given: Any) -> KnownNames | None:
        base.clock.tick(0.4)
        return read(titles, *given)

    monkeypatch.setattr(Titles, "_read", read_slowly)
    monkeypatch.setattr("sage.knowledge.no_deadline", lambda: Deadline(60_000, base.clock))
    with pytest.raises(NotFound) as caught:
        knowledge.get("all", "oddly named")
    assert str(caught.value) == (
        "nothing is called 'oddly named' (the titles of 4 pages are not read yet); "
        'find it with sage_search(query="oddly named")'
    )
    assert paths(knowledge, "The only one") == ["core/only.md"]


@pytest.mark.parametrize(
    ("matter", "line"),
    [
        ("status: draft", "[Draft: not agreed yet.]"),
        ("status: resolved", "[Resolved: what it describes is over.]"),
        ("status: deprecated", "[Deprecated: not for new work.]"),
        ("superseded_by: new", "[Superseded: no longer in force. Read core/newest instead.]"),
        ("superseded_by: ./new.md", "[Superseded: no longer in force. Read core/newest instead.]"),
        (
            "status: deprecated\nsuperseded_by: core/newest",
            "[Deprecated: not for new work. Read core/newest instead.]",
        ),
        ("superseded_by: RFC 9110", "[Superseded: no longer in force. Read RFC 9110 instead.]"),
    ],
)
def test_page_that_is_not_in_force_says_so_above_its_content(
    base: Base, matter: str, line: str
) -> None:
    knowledge = base.open(
        {
            "core/old.md": f"---\n{matter}\n---\n# Old\n\n## Part\n",
            "core/new.md": "---\nsuperseded_by: newest.md\n---\n# New\n",
            "core/newest.md": "# Newest\n",
        }
    )
    content = knowledge.get("core", "old")["content"]
    assert content == f"<!-- .knowledge/core/old.md -->\n\n{line}\n\n# Old\n\n## Part"
    assert line in knowledge.get("core", "old#part")["content"]


def test_pages_that_replace_each_other_lead_nowhere_and_end(base: Base) -> None:
    pages = {f"core/{a}.md": f"---\nsuperseded_by: {b}\n---\n# {a}\n" for a, b in ("ab", "ba")}
    assert "Read b instead" in base.open(pages).get("core", "a")["content"].replace("core/", "")


def test_titles_that_the_index_knows_are_not_read_again(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.open(SITE).warm()
    knowledge = base.open()
    knowledge.search("anything")
    monkeypatch.setattr(Titles, "_read", lambda *_: pytest.fail("a title was read"))
    with pytest.raises(NotFound, match="nearest: core/only"):
        knowledge.get("all", "the onyl one")


LARGE = {f"practices/p{n:03}.md": f"# Page {n}\n\n{'word ' * 40}\n" for n in range(300)} | {
    "practices/index.md": "# First\n\nThe beginning.\n",
    "practices/p299.md": "---\norder: 1\n---\n# Page 299\n\nBefore the others.\n",
}


@pytest.mark.parametrize("topic", [None, "practices/"])
@pytest.mark.parametrize("max_tokens", [60, 500, 5_000, 100_000])
def test_pages_beyond_the_room_are_not_loaded_where_the_index_knows_them(
    base: Base, topic: str | None, max_tokens: int
) -> None:
    base.write(LARGE)
    without, knowing = base.open(), base.open()
    knowing.search("beginning")
    whole = without.get("practices", topic, max_tokens=max_tokens)
    found = knowing.get("practices", topic, max_tokens=max_tokens)
    assert found["content"] == whole["content"]
    for name in ("omitted", "token_count", "complete"):
        assert found["metadata"][name] == whole["metadata"][name], name
    assert whole["metadata"]["files_loaded"] == 301
    assert (found["metadata"]["files_loaded"] < 200) == (max_tokens < 1_000)
    again = knowing.get("practices", topic, max_tokens=max_tokens)
    assert again["metadata"]["from_cache"]


def test_an_edited_page_is_loaded_whatever_the_index_knows(base: Base) -> None:
    base.write(LARGE)
    knowledge = base.open()
    knowledge.search("beginning")
    base.write({"practices/p150.md": "---\norder: 0\n---\n# Now the second\n"})
    answer = knowledge.get("practices", None, max_tokens=500)
    content = answer["content"]
    assert content.index("Now the second") < content.index("Before the others")
    assert answer["metadata"]["files_loaded"] < 200
