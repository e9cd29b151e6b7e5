"""Whether the base has something about a prompt: most prompts need nothing, and get nothing.

A page is about a prompt when the prompt names what the page is about: one of its words stands in
the page's title, headings, tags or path, and a second one anywhere in the page. Words that people
say to an agent whatever the subject (add, fix, file, please) count for neither.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sage.search.explain import Explanation

MAX_WORDS = 32
MIN_SCORE = 0.35
NEAR_THE_BEST = 0.6
"""A further page must be this near the best one's score."""
_NAMING = frozenset({"title", "headings", "tags", "path", "aliases"})
_WORD = re.compile(r"[^\W_][\w.+#'’-]*")
_PART = re.compile(r"[^\W_]+")
_PASTED = re.compile(r"```.*?(?:```|\Z)|https?://\S+", re.DOTALL)
_TALK_WORDS = """
    able about above add added adding after again against ago ahead all almost alone along already
    also although always am among an and another any anyone anything anyway apply are around as ask
    asked at away back bad be became because been before began begin behind being below best better
    between big bit both bring build but by call called can cannot cant change changed changes check
    clear come comes coming complete continue convert copy correct could couple create created
    current cut day days delete describe did didnt different do does doesnt doing done dont double
    down draw during each earlier easy edit eight either else end enough even ever every everyone
    everything exactly example explain far feel few file files fill final find fine finish first
    five fix fixed folder follow following for found four from full function further general get
    gets getting give given gives giving go goes going gone good got great guess had half happen
    happened has have having he hello help her here hers hey hi hide him his hold how however i idea
    if ill im implement important in insert inside instead install into is isnt it its itself ive
    job just keep kept kind knew know known last later least leave left less let lets like line
    lines list listed little load long look looked looking looks lot lots made main make makes
    making many may maybe me mean means might mind mine minute moment more most move moved much must
    my name named names near need needed needs never new next nice nine no nobody none nope not
    note nothing now number of off often ok okay old on once one ones only onto open or order other
    others our ours out outside over own page part parts paste pasted people perfect piece place
    please point possible previous print probably problem proceed proper properly provide pull push
    put question quick quickly quite rather read ready real really reason redo remember remove
    rename replace reply rest result return revert right run running said same save say says second
    see seem seems seen send sense set seven several shall she short should show shows side similar
    simple simply since six skip small so some someone something soon sorry sort sounds start
    started step steps still stop stuff such suggest summarise summarize super sure switch take
    taken takes talk tell ten text than thank thanks that thats the their them then there these they
    thing things think third this those though thought three through time times to today together
    told tomorrow too took top total toward tried try trying turn two under understand undo until up
    update upon us use used uses using usual value variable very via view wait want wanted wants was
    wasnt way we well went were what whatever when where whether which while who whole whom whose
    why will wish with within without wonder wont word words work worked working works would write
    writes writing written wrong wrote yeah yes yesterday yet you your youre yours
"""
_TALK = frozenset(_TALK_WORDS.split())


def content_words(prompt: str) -> list[str]:
    """The words of a prompt that say what it is about, in order; pasted code is not looked at."""
    words = (match.rstrip(".'’-") for match in _WORD.findall(_PASTED.sub(" ", prompt)))
    kept = [
        word
        for word in words
        if word.casefold() not in _TALK and len(word) > 1 and not word.isdigit()
    ]
    return list(dict.fromkeys(kept))[:MAX_WORDS]


def pages_about(words: Sequence[str], explanations: Sequence["Explanation"]) -> list[str]:
    """The paths of those results that are about what the words name, best first."""
    said = {part.casefold() for word in words for part in (word, *_PART.findall(word))}
    about: list[str] = []
    for one in explanations:
        enough = max(MIN_SCORE, NEAR_THE_BEST * explanations[0].score)
        if one.score >= enough and _names_it(one, said):
            about.append(one.path)
    return about


def _names_it(explanation: "Explanation", said: set[str]) -> bool:
    # A word that was corrected into another is not one that was said.
    held = [share for share in explanation.shares if share.fields and share.word in said]
    return len(held) > 1 and any(_NAMING.intersection(share.fields) for share in held)
