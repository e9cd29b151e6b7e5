"""Which language a question is written in, and what shows that a page is written in it."""

import re

from sage.terms.analysis import STOP_WORDS, folded, form_of

_MARKS = {
    "German": "nicht wie warum wann wir ich wird werden für eine einen einem oder über können kann"
    " beim zum zur welche und sind auf ohne wenn darf gehört eines einer haben sehr dass sich auch",
    "French": "pourquoi quand nous vous une dans avec quelle quelles peut être cette faut où sont",
    "Spanish": "cómo qué cuándo dónde cuál está puede debe porque nuestro para hacer",
    "Portuguese": "não você uma fazer posso onde nosso isso também",
    "Italian": "perché della nella sono quale gli possiamo questo anche",
    "Dutch": "waarom wanneer een het niet voor wordt worden kunnen zijn welke moet",
    "Polish": "dlaczego czy kiedy jest są który która się można dla jak",
    "Turkish": "nasıl neden için nedir hangi bir",
    "Russian": "и не на что как для это почему когда мы нужно или при",
    "Ukrainian": "що як чому та для цього потрібно або якщо",
    "Chinese": "的 是 在 了 有 和 我 这 可 以 不 为 时 上 中 用 要 会 个 到",
    "Japanese": "の は を に が で と も て し た",
    "Korean": "은 는 이 가 을 를 의 에 다 고 하",
}
"""Words that most texts of a language hold and that are neither English nor names in code."""
_NOT_ONLY_ENGLISH = frozenset(
    ("a", "am", "an", "as", "do", "i", "in", "me", "no", "on", "so", "was")
)
_SCRIPTS = {
    "Japanese": re.compile(r"[\u3040-\u30ff]"),
    "Korean": re.compile(r"[\uac00-\ud7af]"),
    "Chinese": re.compile(r"[\u4e00-\u9fff]"),
}
_LEAST_SIGNS = 2
_SIGNS_A_WORD = 2
"""Signs that count as much as one English word: a quoted name is no question in its language."""
_PROSE_WORD = re.compile(r"(?<![\w./`:-])[^\W\d_]+(?![\w/`:(=-]|\.\w)")


def language_of(text: str) -> str:
    """The language that a question is written in; empty when it is English, or not sure."""
    words = {word.casefold() for word in _PROSE_WORD.findall(text)}
    english = len(words & STOP_WORDS - _NOT_ONLY_ENGLISH)
    for language, script in _SCRIPTS.items():
        signs = len(script.findall(text))
        if signs >= _LEAST_SIGNS and signs > _SIGNS_A_WORD * english:
            return language
    hits = {language: len(words.intersection(marks.split())) for language, marks in _MARKS.items()}
    most = max(hits.values())
    likely = [language for language, count in hits.items() if count == most]
    is_clear = most > english and len(likely) == 1
    return likely[0] if is_clear else ""


def marks_of(language: str) -> list[str]:
    """The forms of words that show that a page is written in a language."""
    return [form_of(folded(mark)) for mark in _MARKS[language].split()]
