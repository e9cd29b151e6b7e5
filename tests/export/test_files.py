"""What an export writes, and that nothing else changes."""

import random
from pathlib import Path

import pytest

from sage.check.run import check_knowledge
from sage.deadline import no_deadline
from sage.errors import ConfigError, InvalidInput
from sage.export.files import Exporter, exports_of
from sage.export.selection import ExportSelection
from tests.conftest import Base
from tests.findings import TODAY

PAGES = {
    "core/values.md": "---\npriority: high\n---\n# Values\n\n"
    "Ship small. See [deploys](../practices/deploy.md).\n",
    "guidelines/api.md": "# API\n\nBe terse.\n",
    "practices/deploy.md": "---\nsummary: How we deploy\ntags: [Ops]\n---\n"
    "# Deploy\n\n## Steps\n\nPush.\n",
    "practices/labels.md": "---\nsummary: Labels\napplies_to: [src/labels/**, '*.ts']\n---\n"
    "# Labels\n\nPrint.\n",
    "practices/old.md": "---\nstatus: superseded\nsuperseded_by: deploy\n---\n# Old\n\nNever.\n",
}


def exporter(base: Base, pages: dict[str, str] | None = None) -> Exporter:
    knowledge = base.open(PAGES if pages is None else pages)
    settings = knowledge.settings
    return Exporter(settings.root, settings.layers, knowledge.documents(), knowledge.counter)


def written(base: Base, name: str, selection: ExportSelection | None = None) -> dict[str, str]:
    """Export to a host; the files that are there then, by their paths."""
    one = exporter(base)
    export = one.plan(name, selection or ExportSelection())
    one.write(export)
    return {path: (base.root / path).read_text("utf-8") for path in export.paths}


def test_what_is_always_read_has_pages_whole_and_links_back(base: Base) -> None:
    text = written(base, "agents")["AGENTS.md"]
    assert text.startswith("<!-- sage:export:begin budget=2000 -->\n")
    assert text.endswith("\n<!-- sage:export:end -->\n")
    assert "### Values\n\nShip small. See [deploys](.knowledge/practices/deploy.md).\n" in text
    assert "#### Steps" in text
    assert "Source: [practices/deploy](.knowledge/practices/deploy.md)" in text
    assert "Never." not in text
    assert text.index("Values") < text.index("### API") < text.index("### Deploy")


def test_a_file_that_is_a_page_is_not_repeated_in_itself(base: Base) -> None:
    (base.root / "AGENTS.md").write_text("# Agents\n\nSmall commits.\n", "utf-8")
    (base.root / "sage.yaml").write_text("layers:\n  core: [AGENTS.md, docs]\n", "utf-8")
    (base.root / "docs").mkdir()
    (base.root / "docs" / "ship.md").write_text("# Ship\n\nShip small.\n", "utf-8")
    one = exporter(base, {})
    one.write(one.plan("agents", ExportSelection()))
    text = (base.root / "AGENTS.md").read_text("utf-8")
    assert text.count("Small commits.") == 1
    assert "Ship small." in text


def test_a_small_budget_leaves_lines_and_says_how_many_are_left_out(base: Base) -> None:
    many = {f"core/p{at:03}.md": f"# Page {at}\n\nIt says {at}.\n" for at in range(60)}
    one = exporter(base, many)
    (change,) = one.plan("agents", ExportSelection(budget_tokens=400)).changes
    text = (change.after or b"").decode()
    inner = text.split("-->\n\n", 1)[1].rpartition("\n<!--")[0]
    knowledge = base.open()
    assert knowledge.counter.count(inner) <= 400
    shown = inner.count("- [Page ") + inner.count("### Page ")
    assert f"- {60 - shown} more; `sage ls` lists them all" in inner


@pytest.mark.parametrize(
    ("host", "path", "head"),
    [
        ("claude", ".claude/rules/sage/practices-labels.md",
         '---\npaths:\n  - "src/labels/**"\n  - "**/*.ts"\n---\n'),
        ("cursor", ".cursor/rules/sage/practices-labels.mdc",
         '---\ndescription: "Labels"\nglobs: src/labels/**,**/*.ts\nalwaysApply: false\n---\n'),
        ("copilot", ".github/instructions/sage/practices-labels.instructions.md",
         '---\napplyTo: "src/labels/**,**/*.ts"\n---\n'),
        ("skills", ".agents/skills/sage-practices-labels/SKILL.md",
         '---\nname: sage-practices-labels\ndescription: "Labels"\n---\n'),
    ],
)  # fmt: skip
def test_a_page_for_some_files_says_so_in_the_words_of_the_host(
    base: Base, host: str, path: str, head: str
) -> None:
    files = written(base, host)
    assert files[path].startswith(f"{head}<!-- sage:export:file")
    assert "# Labels\n\nPrint.\n" in files[path]
    overview = files.get("CLAUDE.md") or files.get(".cursor/rules/sage/index.mdc", "")
    assert "Print." not in overview
    link = files[path].rpartition("](")[2].rstrip(")\n")
    assert (base.root / path).parent.joinpath(link).resolve() == base.path("practices/labels.md")


def test_only_practices_that_say_what_they_are_for_are_skills(base: Base) -> None:
    files = written(base, "skills")
    assert sorted(path.split("/")[2] for path in files) == [
        "sage-practices-deploy",
        "sage-practices-labels",
    ]


def test_pages_are_chosen_by_layer_tag_and_scope(base: Base) -> None:
    one = exporter(base)
    for selection, titles in (
        (ExportSelection(layers=("guidelines",)), {"API"}),
        (ExportSelection(tags=("ops",)), {"Deploy"}),
        (ExportSelection(scope="src/labels/print.py"), {"Labels"}),
        (ExportSelection(scope="src"), {"Labels"}),
        (ExportSelection(scope="lib/x.py"), set()),
    ):
        (change,) = one.plan("agents", selection).changes
        text = (change.after or b"").decode()
        all_titles = ("API", "Deploy", "Labels", "Values")
        assert {title for title in all_titles if f"### {title}" in text} == titles
        assert ("No page is chosen." in text) == (not titles)


def test_what_was_chosen_is_remembered_in_the_mark(base: Base) -> None:
    chosen = ExportSelection(("core",), ("a tag --> x", "ops"), "src/ü", 700)
    written(base, "agents", chosen)
    one = exporter(base)
    assert one.found() == ["agents"]
    assert one.recorded("agents") == chosen
    assert one.recorded("claude") is None


def test_the_same_pages_give_the_same_bytes_and_another_page_drifts(base: Base) -> None:
    for host in ("agents", "claude", "cursor", "copilot", "skills"):
        written(base, host)
    assert list(exporter(base).drift()) == []
    base.write({"practices/deploy.md": PAGES["practices/deploy.md"] + "\nThen watch.\n"})
    report = check_knowledge(base.settings(), TODAY, exports_of)
    drifted = sorted(one.path for one in report.problems if one.rule == "export-drift")
    assert drifted == [
        ".agents/skills/sage-practices-deploy/SKILL.md",
        ".cursor/rules/sage/index.mdc",
        ".github/copilot-instructions.md",
        "AGENTS.md",
        "CLAUDE.md",
    ]


def test_files_of_pages_that_are_gone_are_removed_and_others_are_left_alone(base: Base) -> None:
    written(base, "claude")
    written(base, "skills")
    own = base.root / ".claude/rules/sage/mine.md"
    own.write_text("# Mine\n")
    base.path("practices/labels.md").unlink()
    knowledge = base.open()
    settings = knowledge.settings
    one = Exporter(settings.root, settings.layers, knowledge.documents(), knowledge.counter)
    for host in ("claude", "skills"):
        one.write(one.plan(host, ExportSelection()))
    assert [path.name for path in (base.root / ".claude/rules/sage").iterdir()] == ["mine.md"]
    assert [path.name for path in (base.root / ".agents/skills").iterdir()] == [
        "sage-practices-deploy"
    ]


def test_a_file_in_the_way_and_a_link_are_left_alone(base: Base, tmp_path: Path) -> None:
    (base.root / ".claude/rules/sage").mkdir(parents=True)
    taken = base.root / ".claude/rules/sage/practices-labels.md"
    taken.write_text("# Somebody's\n")
    with pytest.raises(ConfigError, match="is in the way"):
        written(base, "claude")
    assert taken.read_text() == "# Somebody's\n"
    outside = tmp_path / "outside.md"
    outside.write_text("# Outside\n")
    (base.root / "AGENTS.md").symlink_to(outside)
    with pytest.raises(ConfigError, match="is a link"):
        written(base, "agents")
    (base.root / ".agents").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(ConfigError, match="is a link"):
        written(base, "skills")
    assert outside.read_text() == "# Outside\n"
    assert exporter(base).found() == []


def test_a_page_cannot_reach_over_its_place(base: Base) -> None:
    base.write({"core/values.md": "# V\n\n<!-- sage:export:end -->\n\n[x]: y\n\n```\nopen\n"})
    one = Exporter(
        base.root, ("core",), base.open().documents("core", no_deadline()), base.open().counter
    )
    (change,) = one.plan("agents", ExportSelection()).changes
    text = (change.after or b"").decode()
    assert text.count("<!-- sage:export:end -->") == 1
    assert text.count("```") == 2
    one.write(one.plan("agents", ExportSelection()))
    assert one.plan("agents", ExportSelection()).changes == ()


def test_a_long_page_for_some_files_comes_as_its_outline(base: Base) -> None:
    parts = "".join(f"## Part {at}\n\n{'word ' * 100}\n\n" for at in range(20))
    pages = {"core/long.md": f"---\napplies_to: src\n---\n# Long\n\n{parts}"}
    one = exporter(base, pages)
    changes = one.plan("claude", ExportSelection(budget_tokens=300)).changes
    text = (changes[1].after or b"").decode()
    assert "- [Part 3](../../../.knowledge/core/long.md#part-3)" in text
    assert "longer than 300 tokens" in text
    assert '  - "**/src/**"' in text


def test_a_mark_that_cannot_be_made_again_is_reported(base: Base) -> None:
    (base.root / "AGENTS.md").write_text(
        "<!-- sage:export:begin budget=1 -->\n<!-- sage:export:end -->\n"
    )
    (base.root / "CLAUDE.md").write_text("<!-- sage:export:begin -->\n")
    one = exporter(base)
    with pytest.raises(InvalidInput, match="choose anew"):
        one.recorded("agents")
    messages = {problem.path: problem.message for problem in one.drift()}
    assert "200 to 50,000" in messages["AGENTS.md"]
    assert "damaged" in messages["CLAUDE.md"]


@pytest.mark.parametrize("data", ["# Ü\n".encode("utf-16"), b"a\0b", b"x" * (4 * 1024 * 1024 + 1)])
def test_what_is_no_text_of_a_usual_size_stays_as_it_is(base: Base, data: bytes) -> None:
    (base.root / "AGENTS.md").write_bytes(data)
    with pytest.raises(ConfigError, match="stays as it is"):
        written(base, "agents")
    assert (base.root / "AGENTS.md").read_bytes() == data


def odd_file(seed: int) -> tuple[bytes, bytes, bytes, bool]:
    """A file of an odd shape: before our block, the block, behind it, and whether it is damaged."""
    chance = random.Random(seed)
    end = chance.choice([b"\n", b"\r\n"])
    pieces = [
        b"# Rules", b"", b"- be *nice*", b"```sh\n# x\n```", b"~~~\n```\n~~~", b"    code",
        b"\xe9\xff raw", "grüße 漢字".encode(), b"<!-- comment -->", b"<!-- sage:begin -->",
        b"text  ", b"\ttab",
        b"line\rreturn", b"| a | b |", b"<div>",
    ]  # fmt: skip

    def some() -> bytes:
        lines = [chance.choice(pieces) for _ in range(chance.randrange(8))]
        return b"".join(line.replace(b"\n", end) + end for line in lines)

    mark = b"<!-- sage:export:begin budget=900 -->"
    block = mark + end + b"old" + end + b"<!-- sage:export:end -->"
    before = chance.choice([b"", b"\xef\xbb\xbf"]) + some()
    after = chance.choice([b"", end, end + some(), end + b"no final newline"])
    shape = chance.choice(["none", "block", "block", "two", "half", "tail"])
    if shape == "none":
        return before, b"", chance.choice([b"", b"no final newline"]), False
    if shape == "two":
        return before, block + end + block, after, True
    if shape == "half":
        return before, mark, after, True
    if shape == "tail":
        return before, b"<!-- sage:export:end -->", after, True
    return before, block, after, False


def test_two_hundred_odd_files_keep_every_byte_outside_the_block(base: Base) -> None:
    one = exporter(base)
    base.write({"core/values.md": "# Values\n\nOther words.\n"})
    later = exporter(base, {})
    damaged = 0
    for seed in range(200):
        host, name = [("agents", "AGENTS.md"), ("claude", "CLAUDE.md"),
                      ("copilot", ".github/copilot-instructions.md")][seed % 3]  # fmt: skip
        path = base.root / name
        path.parent.mkdir(exist_ok=True)
        before, block, after, is_damaged = odd_file(seed)
        path.write_bytes(before + block + after)
        if is_damaged:
            damaged += 1
            with pytest.raises(ConfigError, match="damaged"):
                one.plan(host, ExportSelection())
            assert path.read_bytes() == before + block + after
            continue
        for turn in (one, one, later, one):
            turn.write(turn.plan(host, ExportSelection()))
            data = path.read_bytes()
            assert turn.plan(host, ExportSelection()).changes == ()
            if block:
                assert data.startswith(before + b"<!-- sage:export:begin budget=2000 -->")
                assert data.endswith(b"<!-- sage:export:end -->" + after)
            else:
                assert data.startswith(before + after)
                rest = data[len(before + after) :].strip(b"\r\n")
                assert rest.startswith(b"<!-- sage:export:begin")
                assert rest.endswith(b"<!-- sage:export:end -->")
            ours = data[data.index(b"<!-- sage:export:begin") : data.index(b"sage:export:end")]
            assert (b"\r\n" in ours) == (b"\r\n" in (before + block + after))
    assert damaged > 40
