"""Whatever is typed, search answers: in shape, in order, and without raising."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sage.search.answering import sentences
from sage.search.sections import Found
from tests.conftest import Base, loaded_counter
from tests.indexed_base import IndexedBase

PAGES = {
    "core/cpp.md": "# C++ style\n\nUse C++20, prefer `std::move`. C# and .NET are elsewhere.\n",
    "core/dotnet.md": "# .NET services\n\nWe run .NET 8 with C#.\n",
    "practices/sql.md": (
        "# Database\n\n数据库迁移: a database needs a plan.\n\n"
        "Use `getUserName` and snake_case_name.\n"
    ),
    "practices/INDEX.md": "# Index\n\nDatabase, tests and C++ pages are listed here: database.\n",
    "practices/old.md": "---\nstatus: deprecated\n---\n# Database\n\nAn old database page.\n",
    "guidelines/tagged.md": (
        "---\ntags: [ci, web api]\naliases: [pipelines]\ntype: guide\nlanguage: python\n"
        "summary: How builds run.\n---\n# Builds\n\nThey run in order.\n"
    ),
}

HOSTILE = [
    "*", "**", "*a*", "?", "a*b?c", "abcde~3", "abcde~", "a^5", "[a TO z]", "{a TO z}", "[", "]",
    "{", "}", "(" * 5000, ")" * 5000, "(a OR (b AND (c", "NOT " * 100, "AND", "OR OR OR",
    "a AND NOT", "field:", ":value", "title:x body:y", "+a -b +c", "--", "-", "- a", '"', '""',
    '"a', '"' * 999, '" "', "\\", "\\\\*", "/a+/", "/(a+)+$/", "%", "%00", "\x00", "a\x00b",
    "\ud800", "\udfff\ud800", "\u202eabc\u202c", "\u200b", "\ufeff", "🙂", "👩‍👩‍👧‍👦 kin",
    "é" * 600,
    "a" * 1_000_000, "a " * 10_000, "数" * 10_000, "' OR 1=1 --", "<script>alert(1)</script>",
    "layer:", "layer:nowhere x", 'tag:"', "type:type:type:", "\n\t\r", "0", "-1", "1e999", "NaN",
    "$(rm -rf /)", "{{7*7}}", "../../etc/passwd", "a\u0300" * 300, "ﷺ" * 100, "İ" * 100,
]  # fmt: skip


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> IndexedBase:
    folder = tmp_path_factory.mktemp("queries")
    base = Base(folder / "repo", folder / "cache", loaded_counter())
    base.write(PAGES)
    made = IndexedBase(base)
    made.update()
    return made


def check_shape(found: Found, limit: int) -> None:
    scores = [result.score for result in found.sections]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    copies = sum(result.copies for result in found.sections)
    assert len(found.sections) <= limit
    assert len(found.sections) + copies >= min(limit, found.total)
    assert len({result.topic for result in found.sections}) == len(found.sections)
    for result in found.sections:
        assert len(sentences(result)) <= 300
        assert "\n" not in sentences(result)
        assert result.path.startswith(".knowledge/")
        assert 1 <= result.lines[0] <= result.lines[1]


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_queries_are_answered(indexed: IndexedBase, query: str) -> None:
    check_shape(indexed.search(query), 10)


def test_there_are_enough_hostile_queries() -> None:
    assert len(HOSTILE) >= 45


@given(st.text(), st.integers(1, 50))
def test_any_text_is_answered_in_shape(indexed: IndexedBase, query: str, limit: int) -> None:
    check_shape(indexed.search(query, limit=limit), limit)


WORDS = st.sampled_from(
    [
        "database",
        "C++",
        "layer:core",
        "tag:ci",
        '"',
        "-",
        "数据库",
        "databse",
        "type:guide",
        "getUser",
    ]
)


@given(st.lists(WORDS, min_size=1, max_size=40).map(" ".join))
def test_any_mix_of_marks_and_words_is_answered_in_shape(indexed: IndexedBase, query: str) -> None:
    check_shape(indexed.search(query), 10)


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("C++", "core/cpp.md"),
        ("c#", "core/dotnet.md"),
        (".NET", "core/dotnet.md"),
        ("dotnet", "core/dotnet.md"),
        ("数据库", "practices/sql.md"),
        ("迁移", "practices/sql.md"),
        ("getusername", "practices/sql.md"),
        ("get_user_name", "practices/sql.md"),
        ("snakeCaseName", "practices/sql.md"),
        ("user", "practices/sql.md"),
        ("databse", "practices/sql.md"),
        ("data base", "practices/sql.md"),
        ("db", "practices/sql.md"),
        ("pipelines", "guidelines/tagged.md"),
        ("ci", "guidelines/tagged.md"),
        ("web api", "guidelines/tagged.md"),
        ("how do builds run?", "guidelines/tagged.md"),
        ("std::move", "core/cpp.md"),
    ],
)
def test_the_right_page_comes_first(indexed: IndexedBase, query: str, best: str) -> None:
    assert indexed.paths(query)[0] == best


def test_index_and_deprecated_pages_are_demoted_not_hidden(indexed: IndexedBase) -> None:
    assert set(indexed.paths("database")) == {
        "practices/sql.md",
        "practices/INDEX.md",
        "practices/old.md",
    }
    assert indexed.paths("database")[0] == "practices/sql.md"


def test_corrections_and_dropped_words_are_noted(indexed: IndexedBase) -> None:
    found = indexed.search("databse xqzwv")
    assert found.note == '"databse" was searched as "database"'


def test_a_plain_query_has_no_note(indexed: IndexedBase) -> None:
    assert indexed.search("database").note == ""


def test_without_a_match_the_nearest_words_are_named(indexed: IndexedBase) -> None:
    found = indexed.search("plane-tree plxx")
    assert found.sections == [] or found.total
    nothing = indexed.search("datum77")
    assert nothing.sections == []
    assert "nearest words: database" in nothing.note


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("layer:practices tag:ci", []),
        ("tag:ci", ["guidelines/tagged.md"]),
        ('tag:"web api" run', ["guidelines/tagged.md"]),
        ("type:guide", ["guidelines/tagged.md"]),
        ("lang:python builds", ["guidelines/tagged.md"]),
        ("layer:core c#", ["core/dotnet.md", "core/cpp.md"]),
        ("database -old", ["practices/sql.md", "practices/INDEX.md"]),
        ('"old database"', ["practices/old.md"]),
        ('"database old"', ["practices/sql.md", "practices/old.md", "practices/INDEX.md"]),
    ],
)
def test_filters_phrases_and_exclusions(indexed: IndexedBase, query: str, paths: list[str]) -> None:
    assert sorted(indexed.paths(query)) == sorted(paths)


def test_a_phrase_nobody_wrote_is_searched_as_words(indexed: IndexedBase) -> None:
    found = indexed.search('"database old"')
    assert found.note == 'no document holds the phrase "database old": its words were searched'


def test_layers_filter_before_the_limit(indexed: IndexedBase) -> None:
    found = indexed.search("database C++", limit=1, layers=("core",))
    assert [result.entry.layer for result in found.sections] == ["core"]
    assert found.total == 1


def test_the_total_is_true_whatever_the_limit(indexed: IndexedBase) -> None:
    found = indexed.search("database", limit=1)
    assert len(found.sections) == 1
    assert found.total == 3


def test_a_page_with_more_of_the_words_scores_higher(indexed: IndexedBase) -> None:
    both = indexed.search("C++ database").sections[0].score
    one = indexed.search("C++ database zzzyyy").sections[0].score
    assert both > one


def test_base_without_documents_says_so(base: Base) -> None:
    assert base.open({}).search("anything").get("note") == "no document is indexed"


def test_missing_word_without_end_is_not_repeated_whole(base: Base) -> None:
    (missing,) = base.open({"core/a.md": "# A\n"}).search("x" * 5_000)["missing"]
    assert missing == f"{'x' * 80}…"
