"""Files that agents' hosts read by themselves: their scopes, descriptions and imports."""

import os
import random
from pathlib import Path

import pytest

from sage.deadline import no_deadline
from sage.documents.document import parse_document
from sage.documents.imports import MAX_IMPORTS, MAX_STEPS, imports_in
from sage.documents.scopes import folder_scope, matching_glob
from sage.errors import ConfigError, NotFound
from sage.install.adopt import propose, write_config
from sage.knowledge import KnowledgeBase
from tests.conftest import Base
from tests.test_sources import put

EVERYTHING = """layers:
  guidelines:
    - "**/AGENTS.md"
    - "**/CLAUDE.md"
    - .claude/rules
    - .claude/skills
    - .cursor/rules
    - .github/copilot-instructions.md
    - .github/instructions
    - .kiro/steering
"""
FILES = {
    "AGENTS.md": "# Agents\n\nAlways run the tests.\n",
    "packages/api/AGENTS.md": "# The API\n\nHandlers are pure, says the okapi.\n",
    "app/[slug]/AGENTS.md": "# The slug\n\nPages are static.\n",
    "CLAUDE.md": "# Claude\n\nSee @AGENTS.md and @docs/git.md for more.\n",
    "docs/git.md": "# Git\n\nRebase before you push, says the zebra. More in @deeper/more.md\n",
    "docs/deeper/more.md": "# More\n\nSquash what belongs together.\n",
    ".claude/rules/tests.md": '---\npaths:\n  - "tests/**/*.py"\n---\n# Tests\n\nReal files.\n',
    ".claude/skills/deploy/SKILL.md": "---\nname: deploy\ndescription: How to deploy.\n---\n"
    "# Deploy\n\nPush a tag.\n",
    ".cursor/rules/ts.mdc": "---\ndescription: Style of TypeScript\nglobs: *.ts,src/**/*.tsx\n"
    "alwaysApply: false\n---\n\nNo default exports.\n",
    ".cursor/rules/always.mdc": "---\nglobs: *.py\nalwaysApply: true\n---\n# Always\n\nBe kind.\n",
    ".github/copilot-instructions.md": "# Copilot\n\nUse the wrapper.\n",
    ".github/instructions/sql.instructions.md": '---\napplyTo: "**/*.sql"\n---\n# SQL\n\nNo *.\n',
    ".kiro/steering/api.md": "---\ninclusion: fileMatch\nfileMatchPattern: 'api/**/*'\n---\n"
    "# Steering\n\nVersion the API.\n",
    ".kiro/steering/product.md": "---\ninclusion: always\n---\n# Product\n\nA shop.\n",
}
SHAPES = ("*.ts", "src/**", "**/*.{a,b}", "a b/*.md", "[x]/?.py", "é/**", "!x/*.js")


def adopted(base: Base, files: dict[str, str], config: str = EVERYTHING) -> KnowledgeBase:
    put(base.root, files)
    base.write({"sage.yaml": config})
    return base.open()


def test_scoping_keys_become_applies_to_and_descriptions_summaries(base: Base) -> None:
    knowledge = adopted(base, FILES)
    documents = {one.path: one for one in knowledge.documents()}
    assert set(documents) == set(FILES)
    scopes = {path: one.meta.applies_to for path, one in documents.items() if one.meta.applies_to}
    assert scopes == {
        "packages/api/AGENTS.md": ("packages/api/**",),
        "app/[slug]/AGENTS.md": ("app/[[]slug]/**",),
        ".claude/rules/tests.md": ("tests/**/*.py",),
        ".cursor/rules/ts.mdc": ("*.ts", "src/**/*.tsx"),
        ".github/instructions/sql.instructions.md": ("**/*.sql",),
        ".kiro/steering/api.md": ("api/**/*",),
    }
    assert documents[".cursor/rules/ts.mdc"].summary == "Style of TypeScript"
    assert documents[".claude/skills/deploy/SKILL.md"].summary == "How to deploy."
    assert knowledge.info()["problems"]["count"] == 0


@pytest.mark.parametrize(
    ("file", "page"),
    [
        ("packages/api/src/a.py", "guidelines/packages/api/AGENTS"),
        ("app/[slug]/page.tsx", "guidelines/app/[slug]/AGENTS"),
        ("db/x.sql", "guidelines/.github/instructions/sql.instructions"),
        ("api/v1/x.go", "guidelines/steering/api"),
    ],
)
def test_a_file_is_given_the_pages_of_its_folder(base: Base, file: str, page: str) -> None:
    pages = [one["topic"].rpartition("/")[2] for one in adopted(base, FILES).scope(file)["pages"]]
    assert page.rpartition("/")[2] in pages


def test_they_are_off_until_they_are_named(base: Base) -> None:
    put(base.root, FILES)
    assert base.open({"core/a.md": "# A\n"}).topics() == ["core/a"]


def test_what_claude_md_imports_is_served_and_follows_its_edits(base: Base) -> None:
    knowledge = adopted(base, FILES)
    assert knowledge.search("zebra")["results"][0]["path"] == "docs/git.md"
    assert "Squash" in knowledge.get("guidelines", "docs/deeper/more")["content"]
    (base.root / "docs/git.md").write_text("# Git\n\nThe giraffe commits.\n")
    base.clock.tick(2)
    assert knowledge.search("giraffe")["total"] == 1
    assert knowledge.search("squash")["total"] == 0
    (base.root / "CLAUDE.md").write_text("# Claude\n\nNothing more.\n")
    base.clock.tick(2)
    assert knowledge.search("giraffe")["total"] == 0


def test_no_import_leads_out_or_into_what_is_hidden(base: Base, tmp_path: Path) -> None:
    put(tmp_path / "outside", {"secret.md": "# Canary\n"})
    files = {
        "CLAUDE.md": f"@../outside/secret.md @{tmp_path}/outside/secret.md @~/secret.md "
        "@.git/secret.md @docs/link.md @docs/folder/secret.md @.env @package.json @gone.md "
        "mail me@example.md `@docs/code.md`\n\n```\n@docs/fenced.md\n```\n",
        ".git/secret.md": "# Canary\n",
        "docs/code.md": "# Canary\n",
        "docs/fenced.md": "# Canary\n",
        ".env": "CANARY=1\n",
    }
    put(base.root, files)
    os.symlink(tmp_path / "outside/secret.md", base.root / "docs/link.md")
    os.symlink(tmp_path / "outside", base.root / "docs/folder")
    knowledge = adopted(base, {}, "layers: {core: CLAUDE.md}")
    assert knowledge.topics() == ["core/CLAUDE"]
    assert {one.rule for one in knowledge.library.refresh(["core"], no_deadline())[0].problems} == {
        "dead-import"
    }


def test_imports_are_bounded_and_may_go_in_circles(base: Base) -> None:
    chain = {f"c/{n}.md": f"# C{n}\n\n@{n + 1}.md\n" for n in range(20)}
    many = {f"m/{n}.md": f"# M{n}\n" for n in range(MAX_IMPORTS + 20)}
    names = " ".join(f"@m/{n}.md" for n in range(MAX_IMPORTS + 20))
    circle = {"CLAUDE.md": "@a.md @c/0.md\n", "a.md": "@CLAUDE.md @a.md\n"}
    knowledge = adopted(base, {**circle, **chain}, "layers: {core: CLAUDE.md}")
    assert len(knowledge.topics()) == 2 + MAX_STEPS
    put(base.root, {**many, "CLAUDE.md": names})
    base.clock.tick(2)
    assert len(knowledge.topics()) == 1 + MAX_IMPORTS


def test_a_page_that_a_layer_has_already_is_not_imported_into_another(base: Base) -> None:
    knowledge = adopted(base, FILES, "layers: {core: CLAUDE.md, practices: docs}")
    assert sorted(knowledge.topics()) == [
        "core/AGENTS",
        "core/CLAUDE",
        "practices/deeper/more",
        "practices/git",
    ]


def test_imports_stay_within_a_source(base: Base) -> None:
    put(base.root, {"private.md": "# Canary\n", "lib/CLAUDE.md": "@../private.md @own.md\n"})
    put(base.root, {"lib/own.md": "# Its own\n", "lib/sage.yaml": "layers: {core: CLAUDE.md}\n"})
    knowledge = adopted(base, {}, "sources: {lib: lib}")
    assert sorted(knowledge.topics()) == ["core/CLAUDE", "core/lib/own"]
    with pytest.raises(NotFound):
        knowledge.get("all", "private")


def test_init_from_chooses_them(base: Base) -> None:
    put(base.root, FILES)
    first = propose(base.root, ["docs"])
    assert first.host_places[:2] == ("AGENTS.md", "CLAUDE.md")
    proposal = propose(base.root, ["AGENTS.md", ".cursor/rules", ".github/instructions"])
    assert [(one.layer, one.folder, one.pages) for one in proposal.folders] == [
        ("guidelines", "**/AGENTS.md", 3),
        ("guidelines", ".cursor/rules", 2),
        ("guidelines", ".github/instructions", 1),
    ]
    write_config(base.root, proposal)
    assert len(base.open().topics()) == 6
    with pytest.raises(ConfigError, match="no such page"):
        propose(base.root, [".agents/skills"])


def test_generated_files_of_hosts_are_all_served_with_the_scope_they_name(base: Base) -> None:
    chance = random.Random(15)
    wanted: dict[str, tuple[str, ...]] = {}
    for number in range(200):
        globs = [chance.choice(SHAPES)]
        globs += ["second/*"] * chance.randrange(2)
        end = chance.choice(("\n", "\r\n"))
        listed = "".join(f"  - {one}{end}" for one in globs)
        kind = chance.randrange(5)
        path, matter = (
            (f".cursor/rules/r{number}.mdc", f"globs: {','.join(globs)}{end}alwaysApply: false"),
            (f".claude/rules/r{number}.md", f"paths:{end}{listed}".rstrip()),
            (f".github/instructions/r{number}.instructions.md", f'applyTo: "{",".join(globs)}"'),
            (f".kiro/steering/r{number}.md", f"inclusion: fileMatch{end}fileMatchPattern: "
              "[" + ", ".join(f'"{one}"' for one in globs) + "]"),
            (f"folder {number}/AGENTS.md", ""),
        )[kind]  # fmt: skip
        head = f"---{end}{matter}{end}---{end}" if matter else ""
        text = f"{head}# Rule {number}{end}{end}Word{number} counts.{end}"
        put(base.root, {path: text})
        wanted[path] = tuple(globs) if matter else (f"folder {number}/**",)
    knowledge = adopted(base, {})
    found = {one.path: one.meta.applies_to for one in knowledge.documents()}
    assert found == wanted
    assert not any(one.problems for one in knowledge.documents())


def test_a_scope_that_front_matter_names_is_kept(base: Base) -> None:
    document = parse_document("---\napplies_to: x/**\n---\n# A\n", "a/AGENTS.md", "core")
    assert document.meta.applies_to == ("x/**",)
    assert folder_scope("AGENTS.md") == folder_scope(".claude/CLAUDE.md") == ""
    assert folder_scope("a/b/.claude/CLAUDE.md") == "a/b/**"
    assert matching_glob([folder_scope("a{b}/*c/AGENTS.md")], "a{b}/*c/d.py")


def test_only_what_is_an_import_is_taken_for_one() -> None:
    text = "@a.md (@b/c.md), see@d.md @e.md. user@f.md `@g.md` @@h.md\n@i/j.md"
    assert imports_in(text) == ["a.md", "b/c.md", "e.md", "i/j.md"]


def test_a_list_of_bare_globs_is_read_although_it_is_no_yaml() -> None:
    text = "---\nglobs: [*.ts, src/**/*.tsx]\n---\n# Style\n"
    document = parse_document(text, ".cursor/rules/ts.mdc", "guidelines")
    assert document.meta.applies_to == ("*.ts", "src/**/*.tsx")
