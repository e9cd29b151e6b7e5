"""What a task is about, and how relevant each passage is to it.

A task's words without those that every task has, and what its files name, are searched for; what
the search finds becomes a number for each passage.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sage.context.passages import Passage
from sage.documents.languages import languages_named, words_of_files
from sage.search.engine import RankedSections
from sage.terms.analysis import STOP_WORDS, shared_stemmer, tokens

MAX_QUERY = 480
MAX_QUERIES = 3
MAX_TASK = MAX_QUERY * MAX_QUERIES
_SENTENCE = re.compile(r"(?<=[.!?。！？\n])\s+")
# In a query these ask for phrases, exclusions and filters; in a task they are only marks.
_MARKS = re.compile(r"[\"\u201c\u201d]|(?<!\S)-+(?=\w)|(?<=\w):(?=\w)")
_EDGES = "\"'`.,;:!?()[]{}<>*"

# What is done, how much of it and how it is asked for: words of every task, whatever its subject.
_WEAK = frozenset(
    """
    able above achieve add added adding adds adjust after again all allow allows also always any
    anybody anything apply around ask asked asks avoid away back before begin behind below best
    better big both bring build building builds call called calls can cannot change changed
    changes choose come comes copy correct could create created creates creating day days decide
    deliver delivered different do does done down each ease easily easy enable end enough ensure
    entire every everybody everything example existing extend few find finds first fix fixed fixes
    fixing follow for from full further gets give given gives go goes good got great happen
    happens have help here how implement implemented implementing improve include including
    instead into introduce issue just keep keeps know large last later less let like little long
    look looks lots made make makes making many may me might minute minutes modify more morning
    most move moved moves much must my need needed needs never new next nice nobody not nothing
    now off often old once one only other our over own part people perform place please possible
    prepare prepares problem proper properly provide put puts quick quickly rather really refactor
    remove run runs running same say says second see set sets several should show shows simple
    simply since small solve some somebody something soon start started starts stay still stop
    such support supports sure take takes task tell than that their them then there these they
    thing things this those through today together tomorrow too tried tries try turn under until
    up update updated upon us use used uses using very via want wants way ways we week well what
    when where whether which while whole why will with within without work works would write
    writes writing written wrong yesterday yet you your zero two three four five six seven eight
    nine ten eleven twelve twenty thirty fifty hundred thousand million half third quarter twice
    dozen
    """.split()  # noqa: SIM905 (a list of four hundred strings is harder to read)
)

# What people say in a task, and the words that pages have for it.
_IDIOMS = tuple(
    (re.compile(rf"\b(?:{said})\b", re.IGNORECASE), meant)
    for said, meant in (
        (r"tim(?:e|es|ed|ing) out", "timeout"),
        (r"(?:try|tries|tried|trying|send|sends|attempt) (?:it )?again|keep trying", "retry"),
        (r"twice|two times|more than once|double[ds]?|already handled", "duplicate idempotent"),
        (r"undo|go(?:es)? back|take back|roll(?:s|ed)? back|previous version", "rollback revert"),
        (r"roll(?:s|ed|ing)?\b.{0,40}? out|gradually|step by step", "rollout"),
        (r"log(?:s|ged|ging)? in|sign(?:s|ed)? in", "login authentication"),
        (r"who may|may not see|allowed to|permissions?", "authorization access"),
        (r"once in (?:a|\w+)|sometimes|now and then|at random|randomly|every few", "flaky"),
        (r"at the same time|in parallel|simultaneous(?:ly)?|concurrently", "concurrency"),
        (r"memory (?:grows|rises)|grows? every day|out of memory", "memory leak"),
        (r"too slow|slowly|takes? (?:too long|\w+ (?:seconds|minutes))", "slow performance"),
        (r"(?:is|are|was|were|went) down|broken? production|answers? 5\d\d", "incident outage"),
        (r"how long|when (?:it )?will (?:it )?be (?:done|ready)|by when", "estimate"),
        (
            r"cut (?:it |them )?into|split (?:it )?(?:up|into)|small(?:er)? (?:steps|deliveries)",
            "slice split",
        ),
        (r"decid(?:e|es|ing) (?:between|on|whether)|choos(?:e|ing) between", "decision options"),
        (r"attackers?|abuse[ds]?|malicious", "threat security"),
        (r"what (?:went wrong|happened)", "postmortem incident"),
        (r"no downtime|without (?:any )?downtime|while (?:it|both) .{0,30}?runs?", "zero-downtime"),
        (r"clean(?:s|ed)? up|tidy", "cleanup"),
        (r"shut(?:s|ting)?\b.{0,30}? down|told to stop", "shutdown"),
        (r"set(?:s|ting)? up", "setup"),
    )
)


def subject_of(task: str) -> str:
    """A task without the words that do not steer; all of it when nothing else is left."""
    text = _MARKS.sub(" ", task[:MAX_TASK].strip())
    is_go = "go" in languages_named(task)
    kept = [word for word in text.split(" ") if _steers(word) or (is_go and word == "Go")]
    return " ".join(kept) if any(map(str.strip, kept)) else text


def queries_of(task: str, files: Sequence[str], imports: Iterable[str] = ()) -> list[str]:
    """The texts to search for: the task in pieces that a search takes whole, then its files."""
    texts = list(_pieces(subject_of(task)))[:MAX_QUERIES]
    named = [word for word in (*words_of_files(files), *imports) if _steers(word)]
    return [*texts, " ".join(dict.fromkeys(named))[:MAX_QUERY]]


def meant_by(task: str) -> str:
    """The words that pages have for what a task says in others: `retry` for `tries again`."""
    said = task[:MAX_TASK]
    return " ".join(meant for pattern, meant in _IDIOMS if pattern.search(said))


def task_words(task: str, files: Iterable[str], imports: Iterable[str] = ()) -> tuple[str, ...]:
    """The words of a task and its files that say something, each once."""
    words = (token.casefold().removesuffix("'s") for token in tokens(task[:MAX_TASK]))
    said = (word for word in words if len(word) > 1 and word not in STOP_WORDS and _steers(word))
    return tuple(dict.fromkeys((*said, *words_of_files(files), *imports)))


def _steers(word: str) -> bool:
    folded = word.strip(_EDGES).casefold()
    return folded not in _WEAK and not folded.replace(",", "").replace(".", "").isdigit()


def _pieces(text: str) -> Iterable[str]:
    """A text in pieces of bounded length, divided between sentences."""
    piece = ""
    for sentence in _SENTENCE.split(text):
        for part in (sentence[n : n + MAX_QUERY] for n in range(0, len(sentence), MAX_QUERY)):
            if piece and len(piece) + len(part) > MAX_QUERY:
                yield piece
                piece = ""
            piece = " ".join(f"{piece} {part}".split())
    if piece:
        yield piece


Rank = Callable[[str, int], RankedSections]
"""Searches sections: from a text and a limit to those that fit it."""

FOUND_SECTIONS = 60
LATER_WEIGHT = 0.8
FILES_WEIGHT = 0.6
MEANT_WEIGHT = 0.85
REPLACED_WEIGHT = 0.95
SCOPE_WEIGHT = 1.0
"""What a page has whose author says that it belongs to the file at hand."""
SURE_SCORE = 0.45
"""A best score below this says that nothing fits the task well."""
HELD_SHARE = 0.5
"""How much of a page's relevance hangs on what one section of it holds of the task: a title may
share a common word with it, the rare ones stand together where it is about them."""
LEAST_HELD = 0.18
"""A text of which no section holds this share, by rarity, is about something else: over 105 tasks
the least was 0.25."""
LEAST_VALUE = 0.08
"""What is found more weakly than this is as good as not found."""
PAGE_SHARE = 0.6
"""What a section that was not found itself has of its page's relevance."""
FIRST_SHARE = 0.75
"""What the section has that the author puts first on the page."""
INTRODUCTION_SHARE = 0.3
"""What the words before the first section have: they seldom say what to do."""
INTRODUCTION_WEIGHT = 0.7
"""What they keep of what the search found in them."""
PRINCIPLES_WEIGHT = 0.7
"""What a page of principles has of its relevance: it names examples from everywhere."""
FOUND_SHARE = 0.3
"""A section counts as found when it has this share of the best one of its page."""
FOCUSED_SHARE = 0.4
"""A page of which so many sections are found is about the task as a whole."""
LINKED_SHARE = 0.7
"""What a section has of the one that links to it on the same page."""
_BEGINNING = 3
_LINK = re.compile(r"\]\(#([^)\s]{1,200})\)")


@dataclass(slots=True)
class Relevance:
    """What the search found, and which pages belong to the files at hand."""

    sections: dict[tuple[str, int], float] = field(default_factory=dict)
    pages: dict[str, float] = field(default_factory=dict)
    replaces: dict[str, str] = field(default_factory=dict)
    """For the path of a page, the path of the page that the search found and it replaces."""
    scopes: Mapping[str, str] = field(default_factory=dict)
    """For the path of a page, the glob that one of the files lies in."""
    by_meaning: set[str] = field(default_factory=set)
    """The paths of the pages that no word of the task led to."""
    finds_nothing: bool = True
    """Whether the base holds nothing about the task."""

    def of_page(self, passages: Sequence[Passage]) -> list[float]:
        """How relevant each passage of one page is, from 0 to 1."""
        path = passages[0].document.path
        page = self.pages.get(path, 0.0)
        values = [self._own(passage) for passage in passages]
        if _introduces(passages):
            values[0] *= INTRODUCTION_WEIGHT
        linked = _linked(passages, values)
        page *= _focus(values)
        shares = _shares(passages)
        return [
            max(own, share * page, LINKED_SHARE * link)
            for own, share, link in zip(values, shares, linked, strict=True)
        ]

    def _own(self, passage: Passage) -> float:
        path = passage.document.path
        places = range(passage.first, passage.end)
        return max(self.sections.get((path, place), 0.0) for place in places)


def find_relevance(
    task_queries: Sequence[str],
    meant: str,
    file_query: str,
    rank: Rank,
    may_come: Callable[[str], bool],
    successors: Mapping[str, str],
    scopes: Mapping[str, str],
) -> Relevance | None:
    """Search for a task and its files; None when there is nothing to search for.

    Args:
        meant: other words for what the task says.
        may_come: whether the page at a path may come; the best of those sets the scale.
        successors: for the path of a replaced page, the path of the page in force.
        scopes: for the path of a page, the glob that one of the files lies in.
    """
    if not task_queries and not file_query and not scopes:
        return None
    relevance = Relevance(scopes=scopes)
    for n, text in enumerate(task_queries):
        weight = 1.0 if n == 0 else LATER_WEIGHT
        if _search(relevance, text, weight, rank, may_come, successors):
            relevance.finds_nothing = False
    if meant:
        _search(relevance, meant, MEANT_WEIGHT, rank, may_come, successors)
    if file_query:
        weight = FILES_WEIGHT if task_queries else 1.0
        _search(relevance, file_query, weight, rank, may_come, successors)
    for path in scopes:
        relevance.pages[path] = max(relevance.pages.get(path, 0.0), SCOPE_WEIGHT)
    for path, successor in successors.items():
        _hand_over(relevance, path, successor)
    return relevance


def words_in(passage: Passage, words: Iterable[str]) -> list[str]:
    """Those of the words that a passage holds in any form."""
    stem = shared_stemmer().stem
    asked = {word: stem(word) for word in words}
    # Forms of one word begin alike; to stem every word of a passage would take far longer.
    beginnings = {word[:_BEGINNING] for word in asked}
    forms = {stem(word) for word in passage.words if word[:_BEGINNING] in beginnings}
    return [word for word in asked if asked[word] in forms]


def _search(
    relevance: Relevance,
    text: str,
    weight: float,
    rank: Rank,
    may_come: Callable[[str], bool],
    successors: Mapping[str, str],
) -> bool:
    """Add what is found for a text; returns whether some of it is about that text."""
    found, is_about_it = rank(text, FOUND_SECTIONS)
    held: dict[str, float] = {}
    for one in found:
        held[one.path] = max(held.get(one.path, 0.0), one.held)
    eligible = [one for one in found if may_come(one.path) or one.path in successors]
    best = max((one.score for one in eligible), default=1.0)
    most = max((held[one.path] for one in eligible), default=0.0)
    # What may not come sets no scale for the rest, and is named by its own.
    top = max((one.score for one in found), default=1.0)
    for one in found:
        scale = best if may_come(one.path) or one.path in successors else top
        # The square parts what fits from what only shares a word with the task.
        value = weight * min(1.0, scale / SURE_SCORE) * min(1.0, one.score / scale) ** 2
        value *= 1 - HELD_SHARE + HELD_SHARE * min(1.0, held[one.path] / (most or 1.0))
        if value >= LEAST_VALUE:
            if one.by_meaning and one.path not in relevance.pages:
                relevance.by_meaning.add(one.path)
            elif not one.by_meaning:
                relevance.by_meaning.discard(one.path)
            _add(relevance, one.path, one.ordinal, value)
    return is_about_it and (not eligible or most >= LEAST_HELD)


def _add(relevance: Relevance, path: str, position: int, value: float) -> None:
    key = (path, position)
    relevance.sections[key] = max(relevance.sections.get(key, 0.0), value)
    relevance.pages[path] = max(relevance.pages.get(path, 0.0), value)


def _hand_over(relevance: Relevance, path: str, successor: str) -> None:
    """What was found in a replaced page speaks for the page in force."""
    value = relevance.pages.get(path, 0.0) * REPLACED_WEIGHT
    if value > relevance.pages.get(successor, 0.0):
        relevance.replaces[successor] = path
        for position in range(2):
            _add(relevance, successor, position, value)


def _focus(values: Sequence[float]) -> float:
    """How much of a page is about the task, from 0 to 1: a glossary or a list of questions is
    found for one of its many sections, and the others say nothing to the task.
    """
    found = sum(value >= FOUND_SHARE * max(values) for value in values) if any(values) else 0
    return min(1.0, found / (FOCUSED_SHARE * len(values))) if found else 1.0


def _shares(passages: Sequence[Passage]) -> list[float]:
    """What each passage has of its page's relevance, for its place on the page."""
    shares = [PAGE_SHARE] * len(passages)
    introduces = _introduces(passages)
    if introduces:
        shares[0] = INTRODUCTION_SHARE
    shares[introduces] = FIRST_SHARE
    return shares


def _introduces(passages: Sequence[Passage]) -> bool:
    """Whether the first passage of a page is only the words before its first section."""
    return len(passages) > 1 and passages[0].sections[-1].level < 2


def _linked(passages: Sequence[Passage], values: Sequence[float]) -> list[float]:
    """For each passage the most relevant other one of its page that links to it."""
    linked = [0.0] * len(passages)
    anchors = {section.anchor: n for n, one in enumerate(passages) for section in one.sections}
    for n, (passage, value) in enumerate(zip(passages, values, strict=True)):
        if value:
            for anchor in _LINK.findall(passage.document.body, passage.start, passage.stop):
                target = anchors.get(anchor, n)
                if target != n:
                    linked[target] = max(linked[target], value)
    return linked
