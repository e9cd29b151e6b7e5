"""The words that the server speaks itself."""

from sage.server.prompts import instructions, prompt_arguments, task_prompt

LAYERS = ("core", "practices")


def test_the_instructions_name_layers_counts_and_every_tool() -> None:
    text = instructions(LAYERS, {"core": 3, "practices": 0})
    assert "core (3), practices (0)" in text
    for tool in ("sage_get_context", "sage_search", "sage_get_knowledge", "sage_info"):
        assert tool in text


def test_the_instructions_say_how_what_was_learned_is_kept() -> None:
    assert 'draft it with `sage note "…"' in instructions(LAYERS, None)


def test_the_instructions_do_without_counts() -> None:
    assert "core, practices." in instructions(LAYERS, None)


def test_the_instructions_stay_under_a_kilobyte_however_many_layers() -> None:
    layers = tuple(f"layer-{'x' * 100}-{number}" for number in range(500))
    assert len(instructions(layers, dict.fromkeys(layers, 10**6)).encode()) < 1000
    assert "more." in instructions(tuple(f"layer{n}" for n in range(500)), None)
    assert len(instructions(("層" * 5000,), {}).encode()) < 1000


def test_the_prompt_holds_the_task_and_its_context() -> None:
    text = task_prompt("coding", "add retries", {"context": "# Retries\n\nThree at most."})
    assert text.startswith("I am about to start a coding task: add retries\n")
    assert text.endswith("# Retries\n\nThree at most.")
    assert task_prompt("planning", None, {"context": ""}).startswith(
        "I am about to start a planning task.\n"
    )


def test_only_the_task_type_must_be_given() -> None:
    required = [one.name for one in prompt_arguments(("coding",)) if one.required]
    assert required == ["task_type"]
