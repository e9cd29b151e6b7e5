"""The rule about secrets: keys and tokens of known shapes, and values that look like passwords.

Shapes that hardly occur otherwise; examples and placeholders are let pass.
"""

import base64
import math
import re
from collections import Counter
from collections.abc import Iterator

from sage.check.pages import Base, CheckedPage
from sage.check.rules import SECRET
from sage.documents.problems import Problem

_TOKENS = {
    "an AWS access key": r"\b(?:AKIA|ASIA)(?P<body>[A-Z2-7]{16})\b",
    "a GitHub token": r"\b(?:gh[pousr]_|github_pat_)(?P<body>[A-Za-z0-9_]{36,255})\b",
    "a GitLab token": r"\bglpat-(?P<body>[\w-]{20,})",
    "a Slack token": r"\bxox[abeoprs]-(?P<body>[\w-]{20,})",
    "a Slack webhook": r"hooks\.slack\.com/services/(?P<body>T\w{8,}/B\w{8,}/\w{20,})",
    "an API key": r"\bsk-(?:proj-|svcacct-|ant-[a-z0-9]+-)?(?P<body>[A-Za-z0-9_-]{32,})",
    "a Stripe key": r"\b[sr]k_live_(?P<body>[0-9A-Za-z]{20,})",
    "a Google key": r"\bAIza(?P<body>[\w-]{35})\b",
    "an npm token": r"\bnpm_(?P<body>[A-Za-z0-9]{36})\b",
    "a PyPI token": r"\bpypi-AgEIcHlwaS5vcmc(?P<body>[\w-]{50,})",
    "a SendGrid key": r"\bSG\.(?P<body>[\w-]{22}\.[\w-]{43})\b",
    "a Hugging Face token": r"\bhf_(?P<body>[A-Za-z0-9]{34,})\b",
    "a token for a server of SAGE": r"\bsage_[0-9a-f]{12}_(?P<body>[A-Za-z0-9_-]{43})(?![\w-])",
    "an Azure storage key": r"\bAccountKey=(?P<body>[A-Za-z0-9+/]{40,120}={0,2})",
    "a JSON web token": r"(?<![\w-])eyJ[\w-]{10,}+\.(?P<body>eyJ[\w-]{10,}\.[\w-]{20,})",
}
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----\s{1,20}"
    r"(?:[\w-]{1,40}: [^\n]{0,200}\n\s{0,20}){0,8}[A-Za-z0-9+/=]{40}"
)
_ANY_TOKEN = {name: re.compile(pattern) for name, pattern in _TOKENS.items()}
# One cheap look tells that most pages hold nothing of the kind.
_HINT = re.compile(
    r"AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|hooks\.slack|sk-|[sr]k_live_|AIza"
    r"|npm_|pypi-|SG\.|hf_|eyJ|PRIVATE KEY|sage_|AccountKey"
)
# For lower case, and the name is completed backwards: a pattern that minds no case takes six times
# as long, one that begins with any word forty times.
_ASSIGNMENT = re.compile(
    r"(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key)[\w-]{0,20}"
    r"[\"'`]?[ \t]{0,4}[:=]{1,2}[ \t]{0,4}[\"'`]?(?P<value>[^\s\"'`,;<>{}()\[\]]{8,200})"
)
_NAME_BEFORE = re.compile(r"[\w-]{0,40}\Z")
_URL_PASSWORD = re.compile(
    r"://[^\s/:@]{0,60}:(?P<value>[^\s/@\"'`<>{}]{6,100})@(?P<host>[\w.-]{1,200})"
)
# `Server=db;User Id=app;Password=...;` and its like; one other part shows that it is one.
_CONNECTION = re.compile(r"(?:password|pwd) ?= ?(?P<value>[^\s;\"'`<>{}]{6,100})")
_CONNECTION_PARTS = ("server=", "data source=", "host=", "uid=", "user id=", "username=", "dsn=")
_LOCAL = re.compile(r"(?:localhost|127\.0\.0\.1|(?:[\w-]+\.)*example(?:\.\w+)?|host|db|\W*)")
_PLACEHOLDER = re.compile(
    r"example|sample|placeholder|change-?_?me|your|dummy|fake|test|demo|redacted|secret|p[a@4]ss"
    r"|admin|welcome|qwerty|hunter2|token|xxx|\.\.\.|…|\*\*\*|\$|%\w+%|123|234567|abcdef|0000"
    r"|(.)\1{4}|IxMjM0NTY3ODkw",  # the last: the subject of the token that everybody copies
    re.IGNORECASE,
)
_CODE = re.compile(
    r"[A-Za-z_]+\.[A-Za-z_.]+|[A-Za-z_]+|[\w./-]+\.(?:pem|key|json|ya?ml|txt|env)|/[\w./-]+"
    r"|[a-z0-9]+(?:[._/-][a-z0-9]+){2,}"
)


def check_secrets(page: CheckedPage, _: Base) -> Iterator[Problem]:
    """Keys, tokens and passwords, wherever they stand."""
    page = page.cleaned
    seen: set[int] = set()
    found = list(_tokens(page.text)) if _HINT.search(page.text) else []
    for what, start in [*found, *_passwords(page.text)]:
        line = page.line(start)
        if line not in seen:
            seen.add(line)
            yield SECRET.problem(page.path, f"this looks like {what}", line)


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    for match in _PRIVATE_KEY.finditer(text):
        yield "a private key", match.start()
    for name, pattern in _ANY_TOKEN.items():
        for match in pattern.finditer(text):
            body = match["body"]
            if not _PLACEHOLDER.search(body) and _is_random(body, distinct=8):
                yield name, match.start()


def _passwords(text: str) -> Iterator[tuple[str, int]]:
    lower = text.lower()
    # A few letters become two in lower case: their places would be wrong.
    for match in _ASSIGNMENT.finditer(lower if len(lower) == len(text) else text):
        value = text[slice(*match.span("value"))]
        if not _is_example(value) and not _CODE.fullmatch(value) and _is_strong(value):
            yield f"the value of {_name(text, match)}", match.start()
    for match in _URL_PASSWORD.finditer(text):
        here = _LOCAL.fullmatch(match["host"]) is not None
        if _is_password(match["value"]) and (not here or _is_strong(match["value"])):
            yield "a password in an address", match.start()
    for match in _CONNECTION.finditer(lower if len(lower) == len(text) else text):
        around = text[max(0, match.start() - 200) : match.end() + 200].lower()
        is_one = ";" in around and any(part in around for part in _CONNECTION_PARTS)
        if is_one and _is_password(text[slice(*match.span("value"))]):
            yield "a password in a connection string", match.start()


def _is_password(value: str) -> bool:
    """Whether somebody may have chosen a value: no example, and more than letters."""
    return (
        not _PLACEHOLDER.search(value)
        and not value.isalpha()
        and any(map(str.isalpha, value))
        and len(set(value)) >= 5
    )


def _is_example(value: str) -> bool:
    """Whether a value says that it is none, in plain text or in base64."""
    if _PLACEHOLDER.search(value):
        return True
    try:
        text = base64.b64decode(value, validate=True).decode("utf-8").strip()
    except ValueError:
        return False
    return text.isprintable() and (" " in text or _PLACEHOLDER.search(text) is not None)


def _name(text: str, match: re.Match[str]) -> str:
    before = _NAME_BEFORE.search(text[max(0, match.start() - 40) : match.start()])
    after = re.match(r"[\w-]+", text[match.start() : match.end()])
    return (before.group() if before else "") + (after.group() if after else "")


def _is_strong(value: str) -> bool:
    """A long value without order, or a short one of all four kinds of characters."""
    kinds = [
        any(map(str.islower, value)),
        any(map(str.isupper, value)),
        any(map(str.isdigit, value)),
        any(character in "!@#%^&*?+~" for character in value),
    ]
    if all(kinds):
        return True
    return len(value) >= 20 and sum(kinds[:3]) >= 2 and kinds[2] and _entropy(value) >= 3.7


def _is_random(value: str, distinct: int) -> bool:
    return len(set(value)) >= distinct and any(map(str.isdigit, value)) and _entropy(value) >= 3.0


def _entropy(value: str) -> float:
    """Bits a character, as Shannon counts them."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())
