"""What `sage check` can find: every rule with its level, its meaning and how to fix it.

The rules of the walk and of front matter stand here too; they are found where files are read.
"""

from dataclasses import dataclass

from sage.documents.problems import Level, Problem

LEVELS: tuple[Level, ...] = ("note", "warning", "error")


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that can be wrong."""

    name: str
    level: Level
    about: str
    fix: str

    def problem(
        self, path: str, message: str, line: int = 0, level: Level | None = None
    ) -> Problem:
        """A place where the rule is broken."""
        return Problem(path, self.name, message, line, level or self.level)


DEAD_LINK = Rule(
    "dead-link",
    "error",
    "a link leads to a file that does not exist",
    "correct the path, or remove the link; a path that begins with / starts at the root",
)
DEAD_ANCHOR = Rule(
    "dead-anchor",
    "warning",
    "a link leads to a heading that does not exist",
    "use the heading's anchor: lower case, spaces as hyphens, punctuation dropped",
)
DEAD_PATH = Rule(
    "dead-path",
    "warning",
    "a path in backticks does not exist",
    "correct the path: from the page, the layer, .knowledge or the root",
)
UNKNOWN_KEY = Rule(
    "unknown-key",
    "note",
    "front matter has a key that is not read",
    "correct its spelling, or ignore this for keys that other tools read",
)
NO_TITLE = Rule(
    "no-title",
    "warning",
    "a page has no title",
    "begin it with a heading of level 1, or set title in front matter",
)
NO_SUMMARY = Rule(
    "no-summary",
    "warning",
    "a page has nothing that says what it is about",
    "put a sentence under the title, or set summary in front matter",
)
DUPLICATE_TOPIC = Rule(
    "duplicate-topic",
    "error",
    "two pages have the same topic",
    "rename one of them, or join them",
)
DUPLICATE_TITLE = Rule(
    "duplicate-title",
    "note",
    "two pages of a layer have the same title",
    "give each a title that tells them apart in results",
)
DUPLICATE_HEADING = Rule(
    "duplicate-heading",
    "warning",
    "a heading appears twice below the same heading",
    "name them apart: topic addresses and links reach only the first",
)
CASE_COLLISION = Rule(
    "case-collision",
    "error",
    "two names differ only in case or accents' encoding",
    "rename one: macOS and Windows keep only one of them",
)
DEAD_SCOPE = Rule(
    "dead-scope",
    "warning",
    "a glob of applies_to matches no file",
    "correct it: globs start at the root, * stays in a folder, ** crosses folders",
)
NO_LAYER = Rule(
    "no-layer",
    "warning",
    "a page is in no layer, so it is not served",
    "move it into a layer, add its folder to layers in sage.yaml, or list it under ignore",
)
EMPTY_LAYER = Rule(
    "empty-layer",
    "note",
    "a layer has a folder and no page",
    "write its first page, or take it from layers in sage.yaml",
)
UNKNOWN_LANGUAGE = Rule(
    "unknown-language",
    "warning",
    "a page is for a language that SAGE does not know",
    "correct its spelling; a context for a language finds its pages by the name",
)
LARGE_SECTION = Rule(
    "large-section",
    "warning",
    "a section is too long to be a good answer",
    "divide it with headings; sections are what search and context return",
)
LARGE_PAGE = Rule(
    "large-page",
    "warning",
    "a page does not fit into one answer",
    "divide it into pages of one subject each",
)
STALE = Rule(
    "stale",
    "warning",
    "a page has not been changed for a long time",
    "read it; correct it or set last_updated to today",
)
SUPERSEDED = Rule(
    "superseded",
    "warning",
    "a page was replaced, but not by a page that exists",
    "set superseded_by to the topic of the page that replaces it",
)
SECRET = Rule(
    "secret",
    "error",
    "a text looks like a key, a token or a password",
    "remove it and revoke it: history keeps it; for an example use a placeholder in <>",
)
INVISIBLE = Rule(
    "invisible",
    "warning",
    "a line holds characters that nobody sees",
    "delete them; they are removed from every answer",
)
INSTRUCTION = Rule(
    "instruction",
    "warning",
    "a text tells an agent to disregard its instructions",
    "remove it, or quote it if the page is about such texts",
)
EXPORT_DRIFT = Rule(
    "export-drift",
    "warning",
    "what sage export wrote is no longer what the pages say",
    "run sage export again, and change the page instead of what is made from it",
)
IGNORED_SAFETY = Rule(
    "ignored-safety",
    "warning",
    "a page asks to ignore a rule about safety, which has no effect",
    "fix what the rule found; who runs the check can allow it with check.ignore_safety",
)
UNKNOWN_RULE = Rule(
    "unknown-rule",
    "warning",
    "an ignore comment names a rule that does not exist",
    "use a rule of `sage check --rules`",
)

_FOUND_BY_RULES = (
    DEAD_LINK,
    DEAD_ANCHOR,
    DEAD_PATH,
    UNKNOWN_KEY,
    NO_TITLE,
    NO_SUMMARY,
    DUPLICATE_TOPIC,
    DUPLICATE_TITLE,
    DUPLICATE_HEADING,
    CASE_COLLISION,
    DEAD_SCOPE,
    NO_LAYER,
    EMPTY_LAYER,
    UNKNOWN_LANGUAGE,
    LARGE_SECTION,
    LARGE_PAGE,
    STALE,
    SUPERSEDED,
    SECRET,
    INVISIBLE,
    INSTRUCTION,
    EXPORT_DRIFT,
    IGNORED_SAFETY,
    UNKNOWN_RULE,
)
SAFETY = frozenset({SECRET.name, INVISIBLE.name, INSTRUCTION.name})
"""Rules that protect the reader from the writer: a page cannot switch them off."""
FRONT_MATTER = Rule(
    "front-matter",
    "warning",
    "front matter is not valid, so it is ignored",
    "correct the value; the authoring guide lists the keys",
)
_FOUND_BY_READING = (
    FRONT_MATTER,
    Rule("not-text", "warning", "a file is not UTF-8 text", "save it as UTF-8"),
    Rule("being-written", "warning", "a file is being written", "run it again"),
    Rule("unreadable", "warning", "a file cannot be read", "correct its permissions"),
    Rule("unreadable-name", "warning", "a name is not readable text", "rename the file"),
    Rule("broken-link", "warning", "a symbolic link leads to nothing", "remove or correct it"),
    Rule("link-leaves-root", "warning", "a symbolic link is not followed", "copy the file"),
    Rule("not-a-file", "warning", "something is neither file nor folder", "remove it"),
    Rule("not-a-folder", "warning", "a layer is not a folder", "make it a folder"),
    Rule("too-large", "warning", "a file is too large to be served whole", "divide it"),
    Rule("too-deep", "warning", "a folder is nested too deeply", "move it up"),
    Rule("too-many-files", "error", "a layer has too many files", "raise limits.max_files"),
    Rule("listed-twice", "note", "a folder is linked twice", "remove one of the links"),
    Rule("no-folder", "note", "a layer has no folder yet", "create it, or take it from layers"),
    Rule("dead-import", "warning", "an import leads to no page", "correct the path after the @"),
    Rule("no-source", "warning", "a source is not served", "create its folder, or name another"),
    Rule("not-ours", "warning", "a layer is mapped into another source", "map it elsewhere"),
    Rule("hidden", "note", "a hidden file is not served", "rename it if it should be"),
    Rule("ignored", "note", "a file matches a pattern of ignore", "nothing, if it is meant"),
    Rule("exported", "note", "a file was written by sage export", "nothing: edit its page"),
    Rule("not-markdown", "note", "a file is not markdown", "nothing, if it is meant"),
)


def rules() -> dict[str, Rule]:
    """Every rule by its name."""
    return {rule.name: rule for rule in (*_FOUND_BY_RULES, *_FOUND_BY_READING)}


def level_named(name: str) -> Level:
    """The level of that name.

    Raises:
        ValueError: there is none.
    """
    return LEVELS[LEVELS.index(name)]
