"""Secrets are found by their shape; examples of them are not.

No secret stands here whole: each is put together, so that scanners of this repository stay quiet.
"""

import base64
import hashlib

import pytest

from tests.conftest import Base
from tests.findings import checked, found


def noise(length: int, seed: str = "a") -> str:
    """Letters and digits without order, the same in every run."""
    data = b"".join(hashlib.sha512(f"{seed}{n}".encode()).digest() for n in range(4))
    return base64.b64encode(data).decode().replace("+", "k").replace("/", "Q")[:length]


def upper(length: int) -> str:
    return base64.b32encode(hashlib.sha512(b"key").digest()).decode()[:length]


SECRETS = [
    "AKIA" + upper(16),
    "ghp_" + noise(36),
    "github_pat_" + noise(22) + "_" + noise(59, "b"),
    "glpat-" + noise(20),
    "xoxb-" + "2048-4096-" + noise(24),
    "https://hooks.slack.com/services/T0" + upper(8) + "/B0" + upper(8) + "/" + noise(24),
    "sk-" + noise(48),
    "sk-proj-" + noise(48),
    "sk-ant-api03-" + noise(80),
    "sk_live_" + noise(24),
    "AIza" + noise(35),
    "npm_" + noise(36),
    "hf_" + noise(34),
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJ" + noise(30) + "." + noise(43, "c"),
    "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA" + noise(60),
    "-----BEGIN RSA " + "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n" + noise(64),
    "password: Tr0ub4dor&3x",
    'DB_PASSWORD = "v9#Kd!2mQz"',
    "api_key=" + noise(32),
    'client_secret: "' + noise(40) + '"',
    "postgres://app:" + "k8!Rw@2vBn"[:5] + noise(20) + "@db.internal/app",
]

HARMLESS = [
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "ghp_" + "1234567890" * 4,
    "sk-your-key-goes-here-and-is-secret-00000",
    "sk-...",
    "<API_KEY>",
    "password: <password>",
    "password: ${DB_PASSWORD}",
    'password = os.environ["DB_PASSWORD"]',
    "password: str = Field(min_length=8)",
    "password: changeme",
    'json={"password": "Pass123!"}',
    "token: AccessToken",
    "token_budget: 200000",
    "secret = get_secret('projects/team/database')",
    "api_key: settings.api_key",
    "postgres://user:password@localhost:5432/db",
    "postgres://app:s3cret@db/app",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    "-----BEGIN PUBLIC KEY-----\n" + noise(64),
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "secrets: inherit",
    "secret: " + base64.b64encode(b"nobody needs to hide this 1").decode(),
    "secret: " + base64.b64encode(b"placeholder-A1b2C3d4").decode(),
    "secret-name: projects/my-team-project/config-2024/versions",
    "sha256: 223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4ifQ."
    + noise(43),
    "tokens: ~500",
    "access key: see the vault, path team/prod/db2",
]


@pytest.mark.parametrize("secret", SECRETS, ids=range(len(SECRETS)))
@pytest.mark.parametrize("around", ["{}", "- `{}`", "```sh\nexport X={}\n```", "<!-- {} -->"])
def test_a_secret_is_found_wherever_it_stands(base: Base, secret: str, around: str) -> None:
    text = f"# Page\n\nText.\n\n{around.format(secret)}\n"
    first = 6 if around.startswith("```") else 5
    assert found(base, "secret", text)[:1] == [first]


@pytest.mark.parametrize("text", HARMLESS, ids=range(len(HARMLESS)))
def test_an_example_is_let_pass(base: Base, text: str) -> None:
    assert found(base, "secret", f"# Page\n\nText.\n\n{text}\n\n`{text}`\n") == []


def test_front_matter_is_looked_at_too(base: Base) -> None:
    text = f"---\nsummary: use ghp_{noise(36)}\n---\n# Page\n\nText.\n"
    assert found(base, "secret", text) == [2]


def test_the_report_does_not_repeat_the_secret(base: Base) -> None:
    report = checked(base, {"core/page.md": f"# Page\n\napi_key={noise(32)}\n"})
    assert [problem.rule for problem in report.problems] == ["secret"]
    assert noise(8) not in str(report.problems)


RANDOM = base64.urlsafe_b64encode(hashlib.sha256(b"SAGE").digest()).decode().rstrip("=")


@pytest.mark.parametrize(
    "text",
    [
        "sage_0123456789ab_" + RANDOM,
        "postgres://app:kR7vQ9xLm2@db.internal.acme.io:5432/app",
        "redis://:kR7vQ9xLm2@cache.acme.io",
        "amqp://svc:p0nyfarm@mq.acme.io/vhost",
        "Server=db.acme.io;Database=app;User Id=svc;Password=kR7vQ9xLm2;",
        "Data Source=db;uid=sa;pwd=Hq8!zzpo",
        "AccountKey=" + RANDOM.replace("-", "x").replace("_", "y") + "=",
        "AKIAQ3ERTZUIO\u200bPASDFGH",
    ],
)
def test_a_secret_of_these_shapes_is_found(base: Base, text: str) -> None:
    assert found(base, "secret", f"# P\n\nT.\n\n`{text}`\n") == [5]


@pytest.mark.parametrize(
    "text",
    [
        "postgres://user:password@localhost:5432/app",
        "postgres://user:<password>@host/db",
        "redis://:${REDIS_PASSWORD}@cache.acme.io",
        "Server=db;User Id=svc;Password=<yours>;",
        "Server=db;User Id=svc;Password=changeme1;",
        "https://acme.io:8443/path@2x.png",
        "sage_0123456789ab_" + "x" * 43,
        "git@github.com:acme/app.git",
    ],
)
def test_an_example_of_these_shapes_is_let_pass(base: Base, text: str) -> None:
    assert found(base, "secret", f"# P\n\nT.\n\n`{text}`\n") == []
