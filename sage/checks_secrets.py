"""The rule about secrets: keys and tokens of known shapes, and values that look like passwords.

Shapes that hardly occur otherwise; examples and placeholders are let pass.
"""

import base64
import math
import re
from collections import Counter
from collections.abc import Iterator

from sage.pages import Base, Page
from sage.problems import Problem
from sage.rules import SECRET

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
    "a JSON web token": r"\beyJ[\w-]{10,}\.(?P<body>eyJ[\w-]{10,}\.[\w-]{20,})",
}
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----\s+(?:[\w-]+: [^\n]*\n\s*)*"
    r"[A-Za-z0-9+/=]{40,}"
)
_ANY_TOKEN = {name: re.compile(pattern) for name, pattern in _TOKENS.items()}
# One cheap look tells that most pages hold nothing of the kind.
_HINT = re.compile(
    r"AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|hooks\.slack|sk-|[sr]k_live_|AIza"
    r"|npm_|pypi-|SG\.|hf_|eyJ|PRIVATE KEY"
)
# For lower case, and the name is completed backwards: a pattern that minds no case takes six times
# as long, one that begins with any word forty times.
_ASSIGNMENT = re.compile(
    r"(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key)[\w-]{0,20}"
    r"[\"'`]?[ \t]{0,4}[:=]{1,2}[ \t]{0,4}[\"'`]?(?P<value>[^\s\"'`,;<>{}()\[\]]{8,200})"
)
_NAME_BEFORE = re.compile(r"[\w-]{0,40}\Z")
_URL_PASSWORD = re.compile(r"://[^\s/:@]{1,60}:(?P<value>[^\s/:@]{8,100})@[\w.-]+")
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


def check_secrets(page: Page, _: Base) -> Iterator[Problem]:
    """Keys, tokens and passwords, wherever they stand."""
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
        if not _PLACEHOLDER.search(match.group()) and _is_strong(match["value"]):
            yield "a password in an address", match.start()


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
