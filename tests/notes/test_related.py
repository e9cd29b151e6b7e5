"""Pages that belong together are found, with the reason."""

import json
from pathlib import Path

from sage.documents.document import Document, parse_document
from sage.notes.related import Relations
from tests.commands import Run, run
from tests.conftest import Base

__all__ = ["run"]
OUR_BASE = Path(__file__).parents[2] / ".knowledge"


def our_documents() -> list[Document]:
    return [
        parse_document(
            path.read_text("utf-8"),
            f".knowledge/{path.relative_to(OUR_BASE).as_posix()}",
            path.relative_to(OUR_BASE).parts[0],
        )
        for path in sorted(OUR_BASE.rglob("*.md"))
    ]


def test_linked_pages_are_near_even_when_their_links_are_hidden() -> None:
    documents = our_documents()
    by_topic = {document.topic: document for document in documents}
    linked = Relations(documents)
    hidden = linked.without_links()
    pairs = [
        (document, by_topic[one.topic])
        for document in documents
        for one in linked.related(document, 50)
        if "linked from it" in one.reasons
    ]
    near = sum(
        other.topic in [one.topic for one in hidden.related(document, 5)]
        for document, other in pairs
    )
    assert len(pairs) > 50
    assert near / len(pairs) >= 0.6


def test_the_folder_of_a_page_and_its_index_count() -> None:
    text = "# {0}\n\n{0} {0}ish {0}ly.\n"
    topics = {"a/index": "Contents", "a/one": "Alpha", "a/two": "Beta", "b/three": "Gamma"}
    documents = [
        parse_document(text.format(title), f".knowledge/core/{name}.md", "core")
        for name, title in topics.items()
    ]
    found = {one.topic: one.reasons for one in Relations(documents).related(documents[1])}
    assert "index of its folder" in found["core/a/index"]
    assert "same folder" in found["core/a/two"]
    assert "core/b/three" not in found


def test_each_related_page_says_why(base: Base, run: Run) -> None:
    base.write(
        {
            "core/a.md": "---\ntags: [queue]\napplies_to: 'src/q/**'\n---\n# Queues\n\n"
            "See [retries](b.md). Deduplicate messages.\n",
            "core/b.md": "---\ntags: [queue, retry]\n---\n# Retries\n\nMessages are repeated.\n",
            "core/c.md": "---\napplies_to: 'src/q/**'\n---\n# Consumers\n\nA consumer.\n",
        }
    )
    found = json.loads(run("related", "core/a", "--json")[1])["related"]
    reasons = {one["topic"]: " ".join(one["reasons"]) for one in found}
    assert "linked from it" in reasons["core/b"]
    assert "tags: queue" in reasons["core/b"]
    assert "same files: src/q/**" in reasons["core/c"]
    assert "linked from it" in run("related", "core/a")[1]


def test_tags_of_like_pages_are_suggested(base: Base, run: Run) -> None:
    text = "Retries of carrier calls wait with jitter and an idempotency key."
    base.write(
        {
            "core/a.md": f"---\ntags: [retries, carriers]\n---\n# Retry carriers\n\n{text}\n",
            "core/b.md": f"---\ntags: [carriers]\n---\n# Carrier retries again\n\n{text}\n",
            "core/c.md": "---\ntags: [css]\n---\n# Colours\n\nButtons are blue.\n",
        }
    )
    found = json.loads(run("tags", "suggest", "core/b", "--json")[1])["suggestions"]
    assert found[0]["tag"] == "retries"
    assert "core/a" in found[0]["reason"]
    assert "css" not in [one["tag"] for one in found]


def test_duplicates_on_the_command_line(base: Base, run: Run) -> None:
    text = "A carrier call that timed out is tried three times with a growing pause."
    base.write({"core/x.md": f"# X\n\n{text}\n", "core/y.md": f"# Y\n\n{text}\n"})
    assert json.loads(run("duplicates", "--json")[1])["total"] == 1
    assert "core/x#x  =  core/y#y" in run("duplicates")[1]
    assert run("duplicates", "--least", "7")[0] == 2
