"""Languages by their names, their files and the titles of pages about them."""

import pytest

from sage.documents.languages import (
    asked_languages,
    canonical,
    guests_in,
    is_guest,
    is_main,
    languages_in,
    languages_of_files,
    languages_of_path,
    words_of_files,
)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("py", "python"),
        ("Python 3.11", "python"),
        ("python3", "python"),
        ("TS", "typescript"),
        ("tsx", "typescript"),
        ("node", "javascript"),
        ("golang", "go"),
        ("C++17", "c++"),
        ("cpp", "c++"),
        ("C#", "c#"),
        ("csharp", "c#"),
        (".NET", "c#"),
        ("bash", "shell"),
        ("sh", "shell"),
        ("PostgreSQL", "sql"),
        ("Visual  Logo", "visual logo"),
    ],
)
def test_every_spelling_is_one_name(written: str, name: str) -> None:
    assert canonical(written) == name


@pytest.mark.parametrize(
    ("argument", "languages"),
    [
        ("python", ("python",)),
        ("python, sql", ("python", "sql")),
        ("c/c++", ("c", "c++")),
        ("TypeScript and Go", ("typescript", "go")),
        ("py,python3", ("python",)),
        ("any", ()),
        ("", ()),
    ],
)
def test_an_argument_may_name_several_languages_or_any(
    argument: str, languages: tuple[str, ...]
) -> None:
    assert asked_languages(argument) == languages


@pytest.mark.parametrize(
    ("title", "languages"),
    [
        ("Python Guidelines", ("python",)),
        ("TYPESCRIPT_PATTERNS", ("typescript",)),
        ("Go guideline", ("go",)),
        ("Go context and goroutine leaks", ("go",)),
        ("GO", ("go",)),
        ("How we write SQL", ("sql",)),
        ("SHELL_PATTERNS", ("shell",)),
        ("Errors in Go and TypeScript", ("typescript", "go")),
        ("C guidelines", ("c",)),
        ("Errors in C", ("c",)),
        ("C++ style", ("c++",)),
        ("YAML_CONVENTIONS", ("yaml",)),
        ("pytest fixtures", ("python",)),
    ],
)
def test_a_title_gives_its_language_away(title: str, languages: tuple[str, ...]) -> None:
    assert languages_in(title) == languages


@pytest.mark.parametrize(
    "title",
    [
        "Go live checklist",
        "Where to go for help",
        "How to go on",
        "SQL injection prevention",
        "Example C",
        "C",
        "Swift response process",
        "A. Functional quality",
        "Unit testing patterns",
        "Markdown conventions",
    ],
)
def test_a_title_that_only_looks_like_a_language_is_for_everybody(title: str) -> None:
    assert languages_in(title) == ()


def test_the_name_of_a_page_wins_over_its_folder() -> None:
    assert languages_of_path("languages/go/errors.md") == ("go",)
    assert languages_of_path("go/typescript-client.md") == ("typescript",)
    assert languages_of_path("engineering/PythonPatterns.md") == ("python",)
    assert languages_of_path("b/c.md") == ()
    assert languages_of_path("engineering/testing.md") == ()


def test_suffixes_name_languages_most_frequent_first() -> None:
    files = ["db/1.sql", "Dockerfile", "web/a.ts", "web\\b.TSX", "c.ts", "2.sql", "notes.txt"]
    assert languages_of_files(files) == ("typescript", "sql", "dockerfile")


def test_names_and_nearest_folders_of_files_give_words() -> None:
    files = ["/home/me/shop/src/orders/migrations/0042_addWeight.py", "tests/test_orders.py"]
    assert words_of_files(files) == ("add", "weight", "migrations", "orders", "test", "tests")


def test_a_sentence_names_guest_languages_only() -> None:
    assert guests_in("Port the Go client to PostgreSQL with less bash") == ("sql", "shell")
    assert is_guest("sql")
    assert not is_guest("go")
    assert is_main("go")
    assert not is_main("logo")
