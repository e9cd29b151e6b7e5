import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sage.documents.front_matter import FrontMatter, split_front_matter


def read(yaml: str) -> tuple[FrontMatter, list[str]]:
    split = split_front_matter(f"---\n{yaml}\n---\nbody\n", "a.md")
    return split.meta, [str(problem) for problem in split.problems]


def body(text: str) -> str:
    return text[split_front_matter(text, "a.md").body_start :]


def test_every_field_is_read() -> None:
    meta, problems = read(
        "title: Retries\nsummary: >\n  When to\n  retry.\ntags: [http, ops]\n"
        "aliases: backoff, jitter\n"
        "language: Python\nlanguages: [Go]\ntask_types: [Coding, debugging]\npriority: high\n"
        "order: 2.5\nstatus: Draft\nsuperseded_by: core/new\ntype: Trade-off\n"
        "last_updated: 2024-01-31\nowner: [ops, web]\nversion: '1.0'\n"
        "id: n7kq2fx\nsource: a pull request\nreview_by: 2027-01-31\n"
    )
    assert not problems
    assert meta == FrontMatter(
        title="Retries",
        summary="When to retry.",
        tags=("http", "ops"),
        aliases=("backoff", "jitter"),
        languages=("go", "python"),
        task_types=("coding", "debugging"),
        priority=1,
        order=2.5,
        status="draft",
        superseded_by="core/new",
        type="trade_off",
        last_updated="2024-01-31",
        owner="ops, web",
        id="n7kq2fx",
        source="a pull request",
        review_by="2027-01-31",
        extra={"version": "1.0"},
    )


def test_nothing_set_gives_the_defaults() -> None:
    meta, problems = read("")
    assert meta == FrontMatter()
    assert (meta.status, meta.priority, meta.order) == ("published", 0, None)
    assert not problems


def test_unknown_keys_are_kept_as_they_are() -> None:
    meta, problems = read('tokens: "~500"\nnested: {a: [1, true]}\n1: one')
    assert meta.extra == {"tokens": "~500", "nested": {"a": [1, True]}, "1": "one"}
    assert not problems


@pytest.mark.parametrize(
    ("yaml", "id_", "extra"),
    [
        ("id: 17", "17", {}),
        ("id: two words", "", {"id": "two words"}),
        ("id: [a]\nsource: {url: x}", "", {"id": ["a"], "source": {"url": "x"}}),
        (f"id: {'x' * 65}", "", {"id": "x" * 65}),
    ],
)
def test_an_id_is_one_short_word_and_what_others_keep_there_is_theirs(
    yaml: str, id_: str, extra: object
) -> None:
    meta, problems = read(yaml)
    assert (meta.id, meta.extra) == (id_, extra)
    assert not problems


def test_null_counts_as_unset() -> None:
    yaml = "title:\nsummary:\ntags:\npriority:\norder:\nstatus:\ntype:\nowner:\nlanguages:"
    assert read(yaml) == (FrontMatter(), [])


@pytest.mark.parametrize(
    ("yaml", "field", "value"),
    [
        ("title: 2024", "title", "2024"),
        ("title: 1.5", "title", "1.5"),
        ("title: '  a\n  b '", "title", "a b"),
        ("tags: 3", "tags", ("3",)),
        ("tags: [a, a, '', 2]", "tags", ("a", "2")),
        ("tags: a, b ,c", "tags", ("a", "b", "c")),
        ("language: [Python, PYTHON]", "languages", ("python",)),
        ("priority: -100", "priority", -100),
        ("priority: Critical", "priority", 2),
        ("order: 0", "order", 0),
        ("status: RESOLVED", "status", "resolved"),
        ("type: bug fix", "type", "bug_fix"),
        ("last_updated: 2024/1/31", "last_updated", "2024-01-31"),
        ("last_updated: 2024-01-31T10:00:00+02:00", "last_updated", "2024-01-31"),
        ("review_by: 2024.1.31 10:00", "review_by", "2024-01-31"),
        (f"tags: [{', '.join(map(str, range(300)))}]", "tags", tuple(map(str, range(200)))),
    ],
)
def test_value_is_read_as_it_was_meant(yaml: str, field: str, value: object) -> None:
    meta, problems = read(yaml)
    assert getattr(meta, field) == value
    assert not problems


@pytest.mark.parametrize(
    ("yaml", "words"),
    [
        ("title: [a]", "title: expected text, found ['a']"),
        ("title: true", "title: expected text, found True"),
        ("tags: {a: 1}", "tags: expected a list of text, found {'a': 1}"),
        ("tags: [[a]]", "tags: expected a list of text, found [['a']]"),
        ("tags: true", "tags: expected a list of text, found True"),
        ("priority: urgent", "priority: expected one of low, normal, high, critical or -100 to"),
        ("priority: 101", "found 101"),
        ("priority: true", "found True"),
        ("order: first", "order: expected a number, found 'first'"),
        ("order: true", "found True"),
        ("status: done", "status: expected one of draft, published, resolved, superseded"),
        ("status: [draft]", "found ['draft']"),
        ("last_updated: tomorrow", "last_updated: expected a date such as 2027-01-31, found 'tom"),
        ("last_updated: 20240131", "last_updated: expected a date"),
        ("last_updated: 2024-02-30", "last_updated: expected a date"),
        ("review_by: soon", "review_by: expected a date"),
        ("type: blog", "type: expected one of guide, reference, gotcha"),
        (f"order: {'x' * 100}", "expected a number, found str"),
    ],
)
def test_wrong_value_is_ignored_and_reported_with_its_line(yaml: str, words: str) -> None:
    meta, problems = read(f"owner: me\n{yaml}")
    assert len(problems) == 1
    assert problems[0].startswith("a.md:3: front matter: ")
    assert words in problems[0]
    assert problems[0].endswith("; ignored")
    assert meta == FrontMatter(owner="me")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_of_a_wrong_value_is_right_for_every_line_ending(newline: str) -> None:
    text = newline.join(["---", "owner: me", "'order' : x", "---", "body", ""])
    split = split_front_matter(text, "a.md")
    assert [problem.line for problem in split.problems] == [3]
    assert split.meta.owner == "me"
    assert text[split.body_start :] == f"body{newline}"


def test_key_written_in_flow_style_is_reported_at_the_first_line() -> None:
    split = split_front_matter("---\n{a: 1, order: x}\n---\n", "a.md")
    assert [problem.line for problem in split.problems] == [1]


@pytest.mark.parametrize(
    ("yaml", "words", "line"),
    [
        ("title: a: b", "mapping values are not allowed", 2),
        ("title: x\ntags: [a", "not valid YAML", 3),
        ("title: 'x", "not valid YAML", 2),
        ("title: &a x\nowner: *a", "anchors and aliases are not allowed", 2),
        ("title: x\ntitle: y", "the key 'title' appears twice", 3),
        ("a: !!python/name:os.system", "tags such as !!set", 2),
        (f"title: {'x' * 17_000}", "bytes of YAML, at most 16384 are read", 1),
        ("title: x\n\n# a comment\n\nowner: [", "not valid YAML", 6),
    ],
)
def test_broken_front_matter_is_reported_and_the_body_served(
    yaml: str, words: str, line: int
) -> None:
    text = f"---\n{yaml}\n---\n# Body\n"
    split = split_front_matter(text, "a.md")
    assert text[split.body_start :] == "# Body\n"
    assert [problem.line for problem in split.problems] == [line]
    assert words in split.problems[0].message
    assert split.meta == FrontMatter()


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nA rule, `code` and *stars*.\n\n---\n\nmore\n",
        "---\nJust words\n---\nmore\n",
        "---\n- a\n- list\n---\nmore\n",
        "---\ntitle: Unclosed\n\n# Heading\n\nWords with `code`.\n\n---\n\nmore\n",
        "---\n" + "long words\n\n" * 2_000 + "---\nmore\n",
    ],
)
def test_text_between_two_rules_is_never_lost(text: str) -> None:
    assert body(text) == text
    problems = split_front_matter(text, "a.md").problems
    assert [problem.rule for problem in problems] == ["front-matter"]
    assert "served as text" in problems[0].message


def test_front_matter_that_is_never_closed_is_reported_and_served_as_text() -> None:
    text = "---\ntitle: x\n\n# Body\n"
    split = split_front_matter(text, "a.md")
    assert split.body_start == 0
    assert "no closing ---" in split.problems[0].message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "---\n",
        "---\n\ntext",
        "--- \ntext",
        "----\na: 1\n----\n",
        " ---\na: 1\n---\n",
        "a",
    ],
)
def test_text_without_front_matter_is_all_body(text: str) -> None:
    split = split_front_matter(text, "a.md")
    assert (split.meta, split.body_start, split.problems) == (FrontMatter(), 0, ())


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("---\n---\nbody", "body"),
        ("---\na: 1\n---", ""),
        ("---\na: 1\n...\nbody", "body"),
        ("--- \na: 1\n---\t \nbody", "body"),
        ("---\r\na: 1\r\n---\r\nbody\r\n", "body\r\n"),
        ("---\ra: 1\r---\rbody", "body"),
        ("---\na: |\n  ---\n  x\n---\nbody", "body"),
        ("---\n# only a comment\n---\nbody", "body"),
    ],
)
def test_body_begins_after_the_closing_line(text: str, rest: str) -> None:
    assert body(text) == rest


@given(
    st.text(alphabet="ab: -\n\r[]{}'\"&*!#|>\t.`", max_size=60),
    st.sampled_from(["", "\n---\n", "\r\n---\r\n", "\r...\r"]),
    st.text(max_size=20),
)
@example("\ud800: x", "\n---\n", "")
def test_any_text_is_split_and_nothing_before_the_body_is_lost(
    yaml: str, closing: str, rest: str
) -> None:
    text = f"---\n{yaml}{closing}{rest}"
    split = split_front_matter(text, "a.md")
    assert 0 <= split.body_start <= len(text)
    assert split.body_start == 0 or text[: split.body_start].rstrip().endswith(("---", "..."))


def test_toml_is_read_like_yaml() -> None:
    matter = 'title = "Deploy"\ntags = ["ops"]\nweight = 3\ndraft = true\nlastmod = 2024-05-01\n'
    text = f"+++\n{matter}+++\n# T\n"
    split = split_front_matter(text, "a.md")
    assert text[split.body_start :] == "# T\n"
    assert split.problems == ()
    meta = split.meta
    assert (meta.title, meta.tags, meta.order, meta.status) == ("Deploy", ("ops",), 3, "draft")
    assert meta.last_updated == "2024-05-01"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("+++\ntitle = \n+++\n", "front matter ignored: not valid TOML"),
        ("+++\na = " + "[" * 9_000 + "\n+++\n", "front matter ignored: not valid TOML"),
        ("+++\n" + ".".join("a" * 30) + " = 1\n+++\n", "nested deeper than 20"),
        ("+++\ntitle = 1\n", "has no closing +++ line; served as text"),
        ("+++\nWords of a text.\n+++\n", "is not `key = value`; served as text"),
        ('+++\nstatus = "odd"\n+++\n', "status: expected one of draft"),
    ],
)
def test_what_is_wrong_in_toml_is_told(text: str, words: str) -> None:
    assert words in " ".join(map(str, split_front_matter(text, "a.md").problems))


def test_order_and_draft_of_site_generators_are_ours() -> None:
    meta = split_front_matter("---\nsidebar_position: 2\ndraft: true\n---\n", "a.md").meta
    assert (meta.order, meta.status) == (2, "draft")
    ours = "---\norder: 1\nweight: 9\nstatus: published\ndraft: true\n---\n"
    meta = split_front_matter(ours, "a").meta
    assert (meta.order, meta.status) == (1, "published")
