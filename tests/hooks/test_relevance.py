"""Which words of a prompt say what it is about."""

from sage.hooks.relevance import content_words


def test_what_people_say_to_any_agent_is_not_what_a_prompt_is_about() -> None:
    assert content_words("Could you please fix the retry of the carrier call again?") == [
        "retry",
        "carrier",
    ]


def test_pasted_code_and_addresses_are_not_looked_at() -> None:
    assert content_words("Explain\n```\nimport os\n```\nand https://example.org/a") == []
    assert content_words("Explain ``` an open fence with goroutines") == []


def test_names_with_marks_in_them_stay_whole() -> None:
    assert content_words("snake_case, C++ and errors.Is.") == ["snake_case", "C++", "errors.Is"]
