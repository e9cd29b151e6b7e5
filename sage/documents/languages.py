"""Programming languages: their names and aliases, the files and the titles that give one away.

What is kept or left out because of a language is the business of the context.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import NamedTuple

ANY_LANGUAGE = frozenset({"", "any", "all"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Language(NamedTuple):
    """One language; the names are those that mean nothing else in a title."""

    name: str
    names: str
    """Words that name it wherever they stand."""
    short: str = ""
    """Words that name it only beside words such as `guideline`: `go` is also a verb."""
    suffixes: str = ""
    is_guest: bool = False
    """Whether it is written inside projects of other languages, as SQL is."""


# Frameworks and tools stand with the language that nobody uses them without.
_LANGUAGES = (
    Language(
        "python",
        "python python3 cpython pytest django flask fastapi asyncio pydantic pandas numpy mypy",
        "py py3",
        "py pyi pyx ipynb",
    ),
    Language("typescript", "typescript tsx angular tsconfig", "ts", "ts tsx mts cts"),
    Language(
        "javascript",
        "javascript ecmascript nodejs node.js jsx",
        "js es6",
        "js jsx mjs cjs vue",
    ),
    Language("go", "golang goroutine goroutines gofmt", "go", "go"),
    Language("rust", "rust rustlang", "rs", "rs"),
    Language("java", "java springboot", "spring", "java"),
    Language("kotlin", "kotlin", "kt", "kt kts"),
    Language("scala", "scala", "", "scala sc"),
    Language("swift", "swiftui", "swift", "swift"),
    Language("objective-c", "objective-c objc", "", "mm"),
    Language("c", "", "c", "c h"),
    Language("c++", "c++ cpp cxx", "", "cc cpp cxx hpp hh hxx"),
    Language("c#", "c# csharp dotnet .net", "cs", "cs"),
    Language("f#", "f# fsharp", "", "fs fsx"),
    Language("php", "php laravel", "", "php"),
    Language("ruby", "ruby rubyonrails rspec", "rb rails", "rb"),
    Language("perl", "perl", "pl", "pl pm"),
    Language("lua", "lua", "", "lua"),
    Language("r", "rstats", "r", "r"),
    Language("julia", "", "julia jl", "jl"),
    Language("dart", "", "dart flutter", "dart"),
    Language("elixir", "elixir", "", "ex exs"),
    Language("erlang", "erlang", "", "erl"),
    Language("haskell", "haskell", "hs", "hs"),
    Language("clojure", "clojure", "clj", "clj cljs"),
    Language("zig", "ziglang", "zig", "zig"),
    Language(
        "sql",
        "plpgsql tsql",
        "sql postgres postgresql psql mysql mariadb sqlite",
        "sql psql ddl",
        is_guest=True,
    ),
    Language("shell", "bash zsh", "shell sh ksh posix", "sh bash zsh ksh", is_guest=True),
    Language("powershell", "powershell pwsh", "ps1", "ps1 psm1", is_guest=True),
    Language("html", "html5", "html htm", "html htm", is_guest=True),
    Language("css", "css3 scss sass", "css", "css scss sass less", is_guest=True),
    Language("yaml", "", "yaml yml", "yaml yml", is_guest=True),
    Language("terraform", "", "terraform hcl", "tf hcl", is_guest=True),
    Language("dockerfile", "", "dockerfile", "dockerfile", is_guest=True),
)

# What stands beside the name of a language when a page is about the language.
_BESIDE = _words(
    """
    guideline guidelines guide guides pattern patterns style styles convention conventions
    standard standards practice practices best idiom idioms rule rules test tests testing coding
    code coder pitfall pitfalls gotcha gotchas tip tips cheat sheet cheatsheet snippet snippets
    recipe recipes reference basics essentials advanced modern language programming development
    backend frontend project projects setup tooling tools script scripts scripting template
    templates performance optimization types typing packaging concurrency async error errors
    exception exceptions raising handling naming formatting linting debugging logging checklist
    review tutorial example examples faq specific notes version
    in for with and or the our your how to we write writing use using of a an on by
    """
)
_GO = re.compile(
    r"^Go(?![- ](?:live|to|no|nogo|ahead|back|through|beyond|further|home|on|for|down|up)\b)[- ]\w"
)
_GO_IN_SENTENCE = re.compile(
    r"\b(?:in|to|from|for|with|our|the|a|of) Go\b"
    r"|\bGo (?:code|service|server|module|package|program|struct|handler|client|test|library)"
)
_MOST_BESIDE = 6
_BEFORE_LETTER = frozenset({"in", "for", "with", "and", "or", "using", "our"})
_WORD = re.compile(r"[^\W_]+(?:\+\+|#)|\.net\b|node\.js|objective-c|[^\W_]+", re.IGNORECASE)
_DIGITS = "0123456789"
_MAX_NAME = 64
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEVERAL = re.compile(r" ?[,;|&] ?| and |(?<=\w\w)/(?=\w\w)|(?<=\bc)/(?=c\+\+)")

# Folders and names that say nothing about what is in a file.
_EMPTY_WORDS = _words(
    """
    src lib libs app apps main index init mod pkg internal cmd common shared util utils helper
    helpers core base home users user work workspace repo root project tmp var the and new old
    copy file files module modules package packages py js ts md
    """
)
_NEAREST_PARTS = 4
_MAX_FILES = 50


def canonical(name: str) -> str:
    """The one name of a language that is written in many ways."""
    folded = " ".join(name[:_MAX_NAME].casefold().split())
    bare = _without_version(folded.lstrip("."))
    spellings = (folded, bare, bare.replace(" ", ""))
    return next((_by_alias()[one] for one in spellings if one in _by_alias()), bare or folded)


def _without_version(name: str) -> str:
    """`python 3.12` and `python-v3` as `python`."""
    bare = name.rstrip(f"{_DIGITS}.")
    if not name[len(bare) :].strip("."):
        return name
    return bare.removesuffix("v").rstrip(" -") if len(bare) > 1 else bare


def asked_languages(text: str) -> tuple[str, ...]:
    """The languages that an argument means; none when it asks for any."""
    if text.strip().casefold() in ANY_LANGUAGE:
        return ()
    if " ".join(text.casefold().split()) in _by_alias():
        return (canonical(text),)
    parts = (part for part in _SEVERAL.split(" ".join(text.split())) if part)
    return tuple(dict.fromkeys(canonical(part) for part in parts))


def languages_of_files(paths: Iterable[str]) -> tuple[str, ...]:
    """The languages that the suffixes of files give away, the most frequent first."""
    counts: dict[str, int] = {}
    for path in list(paths)[:_MAX_FILES]:
        name = path.replace("\\", "/").rsplit("/", 1)[-1].casefold()
        language = _by_suffix().get(name.rsplit(".", 1)[-1])
        if language:
            counts[language] = counts.get(language, 0) + 1
    return tuple(sorted(counts, key=lambda language: -counts[language]))


def is_known(name: str) -> bool:
    """Whether a name, written in whatever way, is that of a language in our list."""
    return canonical(name) in known_languages()


def known_languages() -> frozenset[str]:
    """The names of all languages in our list."""
    return frozenset(_by_alias().values())


def is_guest(language: str) -> bool:
    """Whether a language is written inside projects of other languages."""
    return language in _guests()


def is_main(language: str) -> bool:
    """Whether a language is known and a project is written in it as a whole."""
    return language in _main()


def languages_named(text: str) -> tuple[str, ...]:
    """The languages of whole projects that a sentence names: `goroutines`, `in Go`, `C++`."""
    words = _WORD.findall(text)
    found = [_plain_names().get(word.casefold(), "") for word in words]
    if _GO_IN_SENTENCE.search(text):
        found.append("go")
    return tuple(dict.fromkeys(name for name in found if name in _main()))


def guests_in(text: str) -> tuple[str, ...]:
    """The guest languages that a sentence names."""
    words = set(_WORD.findall(text.casefold()))
    named = (language for language in _LANGUAGES if language.is_guest)
    return tuple(
        language.name
        for language in named
        if words.intersection((language.names + " " + language.short).split())
    )


@functools.lru_cache(maxsize=16_384)
def languages_in(title: str) -> tuple[str, ...]:
    """The languages that a title, a heading or a name is about; most are about none."""
    written = _WORD.findall(title.replace("_", " "))
    words = [word.casefold() for word in written]
    found = [_plain_names()[word] for word in words if word in _plain_names()]
    short = [n for n, word in enumerate(words) if _names_shortly(words, n, written)]
    others = [w for w in words if w not in _plain_names() and w not in _short_names()]
    if short and len(others) <= _MOST_BESIDE and _BESIDE.issuperset(others):
        found += [_short_names()[words[n]] for n in short]
    elif _GO.match(title):
        found.append("go")
    return tuple(dict.fromkeys(found))


def _names_shortly(words: list[str], place: int, written: list[str]) -> bool:
    """Whether a word can be the name of a language: `Go` is, `go` in a sentence is not."""
    if words[place] not in _short_names():
        return False
    is_sentence = written != words and not all(word.isupper() for word in written)
    if is_sentence and written[place].islower():
        return False
    # One letter more often counts than names: Example C, or C alone behind A and B.
    is_named = len(words) > 1 and (not place or words[place - 1] in _BEFORE_LETTER)
    return len(words[place]) > 1 or is_named


def languages_of_path(path: str) -> tuple[str, ...]:
    """The languages that the name of a document gives away, else those of its folders."""
    *folders, name = path.split("/")
    named = map(_languages_of_name, (PurePosixPath(name).stem, *reversed(folders)))
    return next(filter(None, named), ())


@functools.lru_cache(maxsize=16_384)
def _languages_of_name(name: str) -> tuple[str, ...]:
    # Remembered: most pages lie in folders that were asked for before.
    return languages_in(name) or languages_in(_CAMEL.sub(" ", name))


def words_of_files(paths: Iterable[str]) -> tuple[str, ...]:
    """The words in the names and nearest folders of files, each once, in order."""
    words: dict[str, None] = {}
    for path in list(paths)[:_MAX_FILES]:
        parts = path.replace("\\", "/").strip("/").split("/")[-_NEAREST_PARTS:]
        parts[-1] = parts[-1].rsplit(".", 1)[0] or parts[-1]
        for word in re.findall(r"[^\W_]+", _CAMEL.sub(" ", " ".join(reversed(parts)))):
            folded = word.casefold()
            if len(folded) > 2 and not folded.isdigit() and folded not in _EMPTY_WORDS:
                words.setdefault(folded)
    return tuple(words)


@functools.cache
def _by_alias() -> Mapping[str, str]:
    known = {
        alias: language.name
        for language in _LANGUAGES
        for alias in (language.name, *language.names.split(), *language.short.split())
    }
    known |= {"c plus plus": "c++", "c sharp": "c#", "f sharp": "f#", "objective c": "objective-c"}
    known |= {"node": "javascript", "cargo": "rust", "less": "css"}
    return MappingProxyType(known)


@functools.cache
def _by_suffix() -> Mapping[str, str]:
    return {suffix: one.name for one in _LANGUAGES for suffix in one.suffixes.split()}


@functools.cache
def _plain_names() -> Mapping[str, str]:
    return {name: one.name for one in _LANGUAGES for name in one.names.split()}


@functools.cache
def _short_names() -> Mapping[str, str]:
    return {name: one.name for one in _LANGUAGES for name in one.short.split()}


@functools.cache
def _guests() -> frozenset[str]:
    return frozenset(language.name for language in _LANGUAGES if language.is_guest)


@functools.cache
def _main() -> frozenset[str]:
    return frozenset(language.name for language in _LANGUAGES if not language.is_guest)
