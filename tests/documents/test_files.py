"""What a name stands for, without opening it."""

import errno
import os
import stat
from pathlib import Path

import pytest

from sage.documents.files import Escape, kind_of, link_target, may_pass
from tests.conftest import Base


def test_name_that_only_begins_like_the_root_lies_outside(base: Base) -> None:
    base.write({"core/a.md": "inside"})
    twin = base.root.with_name(f"{base.root.name}-two")
    twin.mkdir()
    (twin / "a.md").write_text("secret")
    base.path("core/b.md").symlink_to(twin / "a.md")
    with pytest.raises(Escape, match="leaves the repository"):
        link_target(base.root, ".knowledge/core/b.md")


def test_a_link_that_cannot_be_read_now_is_not_taken_for_a_file(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    base.write({"core/a.md": "inside"})

    def fail(path: object, **_: object) -> str:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os.path, "realpath", fail)
    with pytest.raises(OSError, match="Input/output"):
        link_target(base.root, ".knowledge/core/a.md")


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (OSError(5, "Input/output error"), True),
        (OSError(24, "Too many open files"), True),
        (PermissionError(13, "Permission denied"), False),
        (FileNotFoundError(2, "No such file"), False),
        (OSError(40, "Too many levels of symbolic links"), False),
        (Escape("a symbolic link"), False),
    ],
)
def test_errors_that_say_nothing_about_a_file_may_pass(error: OSError, passes: bool) -> None:
    assert may_pass(error) is passes


def test_the_kind_of_what_cannot_be_looked_at_now_is_not_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert kind_of(tmp_path / "none") is None
    assert kind_of(tmp_path / "loop") == 0
    assert kind_of(tmp_path) == stat.S_IFDIR

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "failed")

    monkeypatch.setattr(os, "stat", fail)
    with pytest.raises(OSError, match="failed"):
        kind_of(tmp_path)
