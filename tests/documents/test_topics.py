import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.documents.document import Document, parse_document
from sage.documents.files import SourceFile, Stamp
from sage.documents.nearest import Named
from sage.documents.topics import (
    AskedTopic,
    documents_titled,
    files_asked,
    files_named,
    nearest_headings,
    nearest_topics,
    sections_named,
    split_heading,
    topic_parts,
    ways_to_read,
)

PATHS = (
    "core/EXPERT_COMMITTEE.md",
    "core/principles.md",
    "guidelines/testing.md",
    "guidelines/engineering/testing.md",
    "practices/engineering/TESTING.md",
    "practices/engineering/01-code-review.md",
    "practices/testing/flaky-tests.md",
    "practices/testing/INDEX.md",
    "practices/v1.2_notes.md",
    "practices/a/b/c/deep.md",
    "practices/café/设计.md",
    "practices/c#.md",
)


def source(path: str) -> SourceFile:
    return SourceFile(f".knowledge/{path}", path.split("/")[0], Stamp(0, 0, 0, 0))


def named(topic: str) -> list[str]:
    found = files_named([source(path) for path in PATHS], topic)
    return [one.path.removeprefix(".knowledge/") for one in found]


def document(text: str, path: str = "core/a.md") -> Document:
    return parse_document(text, f".knowledge/{path}", path.split("/")[0])


@pytest.mark.parametrize(
    "topic",
    [
        "core/EXPERT_COMMITTEE",
        "core/expert_committee",
        "Expert Committee",
        "expert-committee",
        "EXPERT_COMMITTEE.md",
        ".knowledge/core/EXPERT_COMMITTEE.md",
        "./core/expert committee",
        "core\\Expert_Committee.MD",
        "  expert__committee  ",
        "/core/expert-committee",
    ],
)
def test_document_is_named_whatever_the_spelling(topic: str) -> None:
    assert named(topic) == ["core/EXPERT_COMMITTEE.md"]


@pytest.mark.parametrize(
    ("topic", "found"),
    [
        ("principles", ["core/principles.md"]),
        ("core/principles", ["core/principles.md"]),
        ("v1.2 notes", ["practices/v1.2_notes.md"]),
        ("code-review", ["practices/engineering/01-code-review.md"]),
        ("engineering/code_review", ["practices/engineering/01-code-review.md"]),
        ("01-code-review", ["practices/engineering/01-code-review.md"]),
        ("b/c/deep", ["practices/a/b/c/deep.md"]),
        ("cafe\u0301/设计", ["practices/café/设计.md"]),
        ("c#", ["practices/c#.md"]),
        ("nothing", []),
        ("core/testing", []),
        ("", []),
        ("/", []),
        ("..", []),
    ],
)
def test_document_is_named_by_bare_name_or_path(topic: str, found: list[str]) -> None:
    assert named(topic) == found


def test_documents_of_one_name_are_all_named() -> None:
    assert named("testing") == [
        "guidelines/testing.md",
        "guidelines/engineering/testing.md",
        "practices/engineering/TESTING.md",
    ]
    assert named("engineering/testing") == [
        "guidelines/engineering/testing.md",
        "practices/engineering/TESTING.md",
    ]


def test_whole_path_names_one_document_only() -> None:
    assert named("guidelines/testing") == ["guidelines/testing.md"]


@pytest.mark.parametrize(
    ("topic", "found"),
    [
        ("testing/", ["practices/testing/flaky-tests.md", "practices/testing/INDEX.md"]),
        ("practices/testing", ["practices/testing/flaky-tests.md", "practices/testing/INDEX.md"]),
        ("a/b", ["practices/a/b/c/deep.md"]),
        ("b/c", ["practices/a/b/c/deep.md"]),
        ("core", ["core/EXPERT_COMMITTEE.md", "core/principles.md"]),
    ],
)
def test_folder_names_all_that_lies_below_it(topic: str, found: list[str]) -> None:
    assert named(topic) == found


def test_slash_at_the_end_means_the_folder_and_not_the_page_beside_it() -> None:
    files = [source("core/ops.md"), source("core/ops/deploy.md")]
    assert files_named(files, "core/ops") == files[:1]
    assert files_named(files, "core/ops/") == files[1:]


def test_folder_of_a_layer_comes_before_one_of_the_same_name_below() -> None:
    files = [source("core/old/ops/a.md"), source("core/ops/b.md")]
    assert files_named(files, "ops") == files[1:]
    assert files_named(files[:1], "ops") == files[:1]


def test_title_and_alias_name_documents_in_any_spelling() -> None:
    one = document("---\naliases: [Back-off]\n---\n# How we Retry")
    other = document("# Other")
    assert documents_titled([one, other], "how we  RETRY") == [one]
    assert documents_titled([one, other], "back_off") == [one]
    assert documents_titled([one, other], "retry") == []


HEADED = document(
    "# Testing\n\n## 1. Fixtures\n\n## Fixtures for HTTP\n\n## Launch\n\n## 🚀 Launch\n\n"
    "## Edit README.md\n\n## Setup\n\n### On Windows\n\n## Setup\n\n## Über café\n"
)


@pytest.mark.parametrize(
    ("heading", "anchors"),
    [
        ("launch", ["launch"]),
        ("LAUNCH", ["launch"]),
        ("-launch", ["-launch"]),
        ("🚀 Launch", ["-launch"]),
        ("fixtures", ["1-fixtures"]),
        ("1. Fixtures", ["1-fixtures"]),
        ("fixtures_for http", ["fixtures-for-http"]),
        ("HTTP", ["fixtures-for-http"]),
        ("Edit README.md", ["edit-readmemd"]),
        ("setup", ["setup"]),
        ("setup-1", ["setup-1"]),
        ("on windows.md", ["on-windows"]),
        ("über CAFÉ", ["über-café"]),
        ("nothing", []),
        ("???", []),
        ("", []),
    ],
)
def test_section_is_named_by_heading_or_anchor(heading: str, anchors: list[str]) -> None:
    found = sections_named(HEADED, heading)
    assert [HEADED.sections[position].anchor for position in found] == anchors


@pytest.mark.parametrize(
    ("topic", "parts"),
    [
        ("a#b", ("a", "b")),
        (" a # b ", ("a", "b")),
        ("a", ("a", "")),
        ("a#", ("a", "")),
        ("#b", ("", "b")),
    ],
)
def test_heading_is_split_off_a_topic(topic: str, parts: tuple[str, str]) -> None:
    assert split_heading(topic) == parts


@pytest.mark.parametrize(
    ("topic", "ways"),
    [
        ("a", [("a", "")]),
        ("c#", [("c#", "")]),
        ("#b", [("#b", "")]),
        ("a#b", [("a#b", ""), ("a", "b")]),
        ("c##b", [("c##b", ""), ("c", "#b"), ("c#", "b")]),
    ],
)
def test_topic_may_mean_a_heading_in_more_than_one_way(
    topic: str, ways: list[tuple[str, str]]
) -> None:
    exact, *others = ways_to_read(topic)
    assert exact == AskedTopic(topic, is_exact=True)
    assert [(way.name, way.heading) for way in others] == ways


def test_a_file_whose_name_looks_like_a_link_comes_before_the_file_the_link_leads_to() -> None:
    files = [source("core/a b.md"), source("core/a%20b.md")]
    first = next(found for way in ways_to_read("core/a%20b") if (found := files_asked(files, way)))
    assert [one.topic for one in first] == ["core/a%20b"]


def nearest(topic: str, *paths: str, **titles: str) -> list[str]:
    """The nearest topics; each page of `titles` lies in core."""
    files = [source(path) for path in (*paths, *(f"core/{name}.md" for name in titles))]
    return nearest_topics(
        files, [Named(text, f"core/{name}") for name, text in titles.items()], topic
    )


def test_nearest_topics_come_by_name_title_and_alias() -> None:
    titles = {"http": "exponential backoff", "logging": "Logging", "release": "Release runbook"}
    assert nearest("loging", **titles) == ["core/logging"]
    assert nearest("exponential-backof", **titles) == ["core/http"]
    assert nearest("practices/runbook", **titles) == ["core/release"]
    assert nearest("zzzzqqqq", **titles) == []
    assert nearest("/", **titles) == []


@pytest.mark.parametrize(
    ("topic", "first"),
    [
        ("retries", "core/retries-and-idempotency"),
        ("retry", "core/retries-and-idempotency"),
        ("idempotency", "core/retries-and-idempotency"),
        ("idempotent", "core/retries-and-idempotency"),
        ("entires", "core/entries"),
        ("rollbacks", "practices/ops/how-to-roll-back"),
        ("roll back", "practices/ops/how-to-roll-back"),
        ("practices/ops/deployment", "practices/ops/deploy"),
        ("deploying", "practices/ops/deploy"),
        ("../ops/deployments.md#x", "practices/ops/deploy"),
    ],
)
def test_nearest_topic_is_the_one_that_a_person_would_mean(topic: str, first: str) -> None:
    paths = (
        "core/retries-and-idempotency.md",
        "core/entries.md",
        "practices/ops/how-to-roll-back.md",
        "practices/ops/deploy.md",
        "guidelines/deploy-to-staging.md",
    )
    assert nearest(topic, *paths)[0] == first


def test_nearest_headings_are_the_closest_or_the_first() -> None:
    assert nearest_headings(HEADED, "fixturs")[0] == "core/a#1-fixtures"
    assert nearest_headings(HEADED, "qqqq", most=2) == [
        "core/a#1-fixtures",
        "core/a#fixtures-for-http",
    ]
    assert nearest_headings(document("words"), "x") == []


@given(st.text(max_size=60))
def test_any_text_is_a_topic(text: str) -> None:
    named(text)
    topic_parts(text)
    name, heading = split_heading(text)
    sections_named(HEADED, heading or name)
    nearest_topics([source(path) for path in PATHS], [], text)
    nearest_headings(HEADED, text)
    assert documents_titled([HEADED], text) in ([], [HEADED])
