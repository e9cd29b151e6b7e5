"""Words that stand for each other: those of anybody who writes software, and a team's own."""

from collections.abc import Iterable, Mapping, Sequence

# Words that mean the same to anybody who writes software; a team adds its own in its settings.
_GROUPS = """
admin administrator
app application
arg argument parameter param
async asynchronous
auth authentication authorization
authn authentication
authz authorization
autoscaling autoscaler
bug defect
ci integration
config configuration
creds credentials
csharp c#
cpp c++
db database
deps dependencies
dev development
dir directory folder
doc docs documentation
dotnet .net
e2e end-to-end
env environment
err error
exec execute
golang go
i18n internationalization
impl implementation
info information
js javascript
k8s kubernetes
l10n localization
lib library
lint linter linting
msg message
mr pr pull-request merge-request
perf performance
postgres postgresql
prod production
py python
regex regexp
repo repository
rollback revert undo
setup installation
spec specification
sync synchronize
temp temporary
ts typescript
tz timezone
util utility
var variable
vm virtual-machine
yml yaml
"""


def built_in() -> dict[str, tuple[str, ...]]:
    """For each word the others of its groups."""
    return _linked(line.split() for line in _GROUPS.strip().splitlines())


def with_team(settings: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The built-in synonyms and a team's own, which stand for each other both ways."""
    linked = built_in()
    own = _linked([key.casefold(), *map(str.casefold, words)] for key, words in settings.items())
    for word, others in own.items():
        linked[word] = tuple(dict.fromkeys((*others, *linked.get(word, ()))))
    return linked


def _linked(groups: Iterable[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    linked: dict[str, tuple[str, ...]] = {}
    for group in groups:
        for word in group:
            others = tuple(other for other in group if other != word)
            linked[word] = tuple(dict.fromkeys((*linked.get(word, ()), *others)))
    return linked
