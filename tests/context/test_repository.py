"""What the repository around a base tells."""

from pathlib import Path

import pytest

from sage.context.repository import below_root, imports_of, repository_language
from tests.conftest import Base
from tests.contexts import prose


def write(root: Path, *names: str, text: str = "") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def test_the_language_of_most_source_files_is_the_one_of_the_repository(tmp_path: Path) -> None:
    write(tmp_path, "cmd/main.go", "pkg/a.go", "scripts/tool.py", "schema.sql", "x.sh", "y.sh")
    assert repository_language(tmp_path) == "go"


def test_a_repository_without_source_files_is_taken_for_python(tmp_path: Path) -> None:
    write(tmp_path, "README.md", "deploy.sh")
    assert repository_language(tmp_path) == "python"


def test_what_others_wrote_and_what_is_hidden_does_not_count(tmp_path: Path) -> None:
    write(tmp_path, "node_modules/a/a.js", "node_modules/a/b.js", ".tox/c.py", ".tox/d.py", "e.rs")
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    write(outside, *(f"{n}.java" for n in range(9)))
    (tmp_path / "linked").symlink_to(outside)
    assert repository_language(tmp_path) == "rust"


def test_a_large_repository_is_looked_at_only_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.go", *(f"deep/{n}.py" for n in range(20)))
    monkeypatch.setattr("sage.context.repository.MAX_NAMES", 3)
    assert repository_language(tmp_path) == "go"


@pytest.mark.parametrize(
    ("name", "text", "imports"),
    [
        ("a.py", "import asyncio\nfrom sqlalchemy.orm import Session\n", ("asyncio", "sqlalchemy")),
        ("a.py", "from . import models\nfrom app.models import Order\n", ()),
        (
            "a.ts",
            "import { useQuery } from '@tanstack/react-query'\nimport x from './x'\n",
            ("tanstack", "react-query"),
        ),
        ("a.js", "const express = require('express')\n", ("express",)),
        ("a.go", 'import (\n\t"context"\n\tpgx "github.com/jackc/pgx/v5"\n)\n', ("jackc", "pgx")),
        ("a.rs", "use tokio::sync::mpsc;\n", ("tokio",)),
        ("A.java", "import org.springframework.web.bind.Foo;\n", ("springframework",)),
        ("a.c", "#include <pthread.h>\n", ("pthread",)),
    ],
)
def test_a_file_imports_what_its_first_lines_name(
    tmp_path: Path, name: str, text: str, imports: tuple[str, ...]
) -> None:
    write(tmp_path, f"app/{name}", text=text)
    assert imports_of(tmp_path, [f"app/{name}"]) == imports


@pytest.mark.parametrize("name", ["../a.py", "/etc/a.py", ".env", ".git/a.py", "a.txt", "gone.py"])
def test_other_files_are_not_opened(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    write(tmp_path, "a.py", "root/a.txt", "root/.env", "root/.git/a.py", text="import asyncio\n")
    assert imports_of(root, [name]) == ()


def test_a_hostile_file_is_read_in_no_time(tmp_path: Path) -> None:
    write(tmp_path, "a.py", text="import " + "a." * 5_000 + "\n" + "import x" * 5_000)
    assert len(imports_of(tmp_path, ["a.py"] * 50)) <= 16


def test_a_file_is_called_as_below_the_root(tmp_path: Path) -> None:
    assert below_root(tmp_path, f"{tmp_path}/src/a.py") == "src/a.py"
    assert below_root(tmp_path, "src\\a.py") == "src/a.py"
    assert below_root(tmp_path, "/elsewhere/a.py") == "/elsewhere/a.py"


def test_a_go_repository_gets_its_go_pages_unasked(base: Base) -> None:
    knowledge = base.open(
        {
            "guidelines/go.md": f"# Go guideline\n\n## Queues\n\nKeep the queue. {prose(60, 1)}\n",
            "guidelines/python.md": f"# Python guideline\n\n## Q\n\nA queue. {prose(60, 2)}\n",
        }
    )
    write(knowledge.settings.root, "main.go", "queue.go")
    answer = knowledge.context("coding", task="keep the queue")
    assert [source["topic"] for source in answer["sources"]] == ["guidelines/go#queues"]
    assert answer.get("note") == "left out: guidelines/python (python)"


def test_the_settings_name_the_language(base: Base) -> None:
    pages = {
        f"guidelines/{name}.md": f"# {name} guideline\n\n{prose(60, n)}\n"
        for n, name in enumerate(("go", "rust"))
    }
    knowledge = base.open(pages | {"sage.yaml": "context: {language: rust}\n"})
    assert [one["topic"] for one in knowledge.context("coding")["sources"]] == ["guidelines/rust"]
