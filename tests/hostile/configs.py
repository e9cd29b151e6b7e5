"""Cases of `sage.yaml` and `eval.yaml`: every wrong type, bombs, and what would lead outside."""

from collections.abc import Iterator

_NUMBERS = (
    "cache.ttl_seconds",
    "limits.max_file_bytes",
    "limits.max_files",
    "limits.call_timeout_ms",
)

REFUSED: dict[str, str | bytes] = {
    "not-a-mapping": "- a\n- b\n",
    "text": "just text\n",
    "number": "5\n",
    "unknown-key": "tools: [shell]\n",
    "root": "root: /etc\n",
    "cache-dir": "cache_dir: /tmp/evil\n",
    "config-path": "config_path: /etc/passwd\n",
    "host": "host: 0.0.0.0\n",
    "tokens": "tokens: /etc/shadow\n",
    "alias-bomb": "a: &a [x]\nb: [*a, *a]\n",
    "anchor": "layers: &l [core]\n",
    "merge": "cache: {<<: {ttl_seconds: 1}}\n",
    "python-object": "layers: !!python/object/apply:os.system ['touch owned']\n",
    "duplicate-key": "layers: [core]\nlayers: [practices]\n",
    "depth": "recipes: " + "{a: " * 100 + "1" + "}" * 100,
    "brackets": "layers: " + "[" * 50_000,
    "large": "# " + "x" * 300_000,
    "nul": "layers: [core]\0",
    "latin-1": b"layers: [caf\xe9]\n",
    "utf-16": "layers: [core]\n".encode("utf-16"),
    "surrogate": b"layers: [\xed\xa0\x80]\n",
    "layer-up": "layers: ['..']\n",
    "layer-far-up": "layers: ['../../outside']\n",
    "layer-absolute": "layers: [/etc]\n",
    "layer-backslash": "layers: ['..\\outside']\n",
    "layer-home": "layers: ['~']\n",
    "layer-hidden": "layers: [.git]\n",
    "layer-all": "layers: [all]\n",
    "layer-empty": "layers: ['']\n",
    "layer-nul": 'layers: ["core\\0"]\n',
    "layer-twice": "layers: [core, CORE]\n",
    "layers-none": "layers: []\n",
    "recipe-unknown": "recipes: {coding: {run: shell}}\n",
    "recipe-list": "recipes: [a]\n",
    "recipe-name": "recipes: {'../x': {}}\n",
    "recipe-words": "recipes: {coding: {words: [[1]]}}\n",
    "encoding-path": "encoding: ../../outside\n",
    "operators": "log_level: debug\n",
    "limits": "limits: {call_timeout_ms: 600000}\n",
    "bad-pattern": "ignore: ['!']\n",
}
# These are odd but allowed: the server starts and serves.
ACCEPTED = """\
layers: [core, guidelines, frameworks, practices]
ignore: ['*a*a*a*a*a*a*a*b', '/../outside', '../..', '~/*', '/etc/*', '[', '**/x/**']
synonyms:
  quokka: [quokka, axolotl, '.*', '(a+)+$', '']
  axolotl: [quokka]
  '(a+)+$': ['\u202e', 'x']
recipes:
  coding: {words: ['(a+)+$', '[', '\\'], always: ['../../outside/secret', '/etc/passwd', healthy]}
  evil: {based_on: coding}
"""


def wrong_values() -> Iterator[tuple[str, str]]:
    """A setting and a text for it that is of the wrong type or out of range."""
    for key in _NUMBERS:
        group, _, name = key.partition(".")
        for value in ("abc", "true", "[1]", "{a: 1}", "-1", "1.0e99", "99999999999999999"):
            yield f"{key}={value}", f"{group}: {{{name}: {value}}}\n"
    for key in ("layers", "ignore"):
        for value in ("5", "true", "{a: 5}", "[[1]]", "[{a: b}]"):
            yield f"{key}={value}", f"{key}: {value}\n"
    for key in ("encoding", "log_level"):
        for value in ("5", "[a]", "{a: b}", "evil"):
            yield f"{key}={value}", f"{key}: {value}\n"
    for key in ("synonyms", "recipes", "cache", "limits", "check"):
        for value in ("5", "[a]", "evil"):
            yield f"{key}={value}", f"{key}: {value}\n"


GOLDEN: dict[str, str | bytes] = {
    "bomb": "a: &a [x]\nb: *a\n",
    "depth": "[" * 5_000,
    "object": "- !!python/object/apply:os.system ['touch owned']\n",
    "shape": "- {query: [a], expect: 5}\n",
    "text": "just text\n",
    "unknown": "- {query: a, expect: b, run: shell}\n",
    "nul": "- {query: a, expect: b}\0",
    "latin-1": b"- {query: caf\xe9, expect: b}\n",
}
