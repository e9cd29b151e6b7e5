"""After any number of edits the index answers as one that was built from scratch."""

import random
from pathlib import Path

from tests.conftest import Base
from tests.indexed_base import IndexedBase

WORDS = (
    "retry",
    "timeout",
    "cache",
    "database",
    "index",
    "fixture",
    "deploy",
    "rollback",
    "secret",
    "login",
    "getUserName",
    "error_handling",
    "kebab-case",
    "python",
    "C++",
    "数据库",
    "迁移",
    "review",
)
QUERIES = (
    "retry timeout",
    "how do I roll back a deploy",
    "databse",
    "error handling",
    "数据库",
    '"cache database"',
    "login -secret",
    "python C++ get user name",
    "handbook",
    "layer:core review",
)


def page(chance: random.Random) -> str:
    sections = [f"# {' '.join(chance.choices(WORDS, k=2))}\n"]
    for level in range(chance.randrange(4)):
        words = " ".join(chance.choices(WORDS, k=chance.randrange(2, 40)))
        sections.append(f"{'#' * (2 + level % 2)} {chance.choice(WORDS)}\n\n{words}.\n")
    footer = chance.choice(("", "\n---\n\n*The handbook*\n", "\n---\n\n*The handbook*\n"))
    return "\n".join(sections) + footer


def edit(base: Base, chance: random.Random) -> None:
    """Write, delete or rename one page."""
    pages = sorted(base.root.rglob("*.md"))
    target = base.path(f"{chance.choice(('core', 'practices'))}/p{chance.randrange(30)}.md")
    action = chance.random()
    if action < 0.6 or len(pages) < 3:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(chance))
    elif action < 0.8:
        chance.choice(pages).unlink()
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        chance.choice(pages).rename(target)


def answers(indexed: IndexedBase) -> list[object]:
    return [indexed.search(query, limit=50) for query in QUERIES]


def test_results_equal_those_of_a_fresh_index_after_200_edits(base: Base, tmp_path: Path) -> None:
    chance = random.Random(20)
    indexed = IndexedBase(base)
    for number in range(1, 201):
        edit(base, chance)
        indexed.update()
        if number % 25 == 0:
            base.environment["SAGE_CACHE_DIR"] = str(tmp_path / f"fresh{number}")
            assert answers(indexed) == answers(IndexedBase(base))
        if number % 60 == 0:
            indexed.engine.close()
            base.environment["SAGE_CACHE_DIR"] = str(tmp_path / "cache")
            indexed = IndexedBase(base)
    assert indexed.engine.state.documents == len(list(base.root.rglob("*.md")))
