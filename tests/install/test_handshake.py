"""A server is started and greeted as a client would, and is gone afterwards."""

import os
import sys
from pathlib import Path

import pytest

from sage.install.handshake import Greeting, greet

READ = "import json,sys; m=json.loads(sys.stdin.readline()); "
ANSWER = READ + (
    "print(json.dumps({'jsonrpc':'2.0','method':'notifications/message','params':{}}));"
    "print(json.dumps({'jsonrpc':'2.0','id':m['id'],"
    "'result':{'serverInfo':{'name':'toy','version':'7'}}}), flush=True); sys.stdin.read()"
)


def run(program: str, timeout_seconds: float = 300, **variables: str) -> Greeting:
    return greet([sys.executable, "-c", program], variables, timeout_seconds)


def test_a_server_that_answers_is_ready() -> None:
    greeting = run(ANSWER)
    assert greeting.is_ready
    assert greeting.message.endswith("s (toy 7)")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import sys; sys.exit('no such root')", "exit code 1: no such root"),
        ("raise SystemExit(4)", "exit code 4"),
        ("print('Welcome!', flush=True); input()", "prints 'Welcome!"),
        (READ + "print(json.dumps({'id':1,'error':{'code':-1}}), flush=True)", "error: {'code'"),
        (READ + "print('[1]', flush=True)", "where only messages may be"),
    ],
)
def test_a_server_that_fails_says_how(program: str, words: str) -> None:
    greeting = run(program)
    assert not greeting.is_ready
    assert words in greeting.message


def test_a_silent_server_is_ended_in_time(tmp_path: Path) -> None:
    # A shell is up at once, also on a busy machine: it has to be before the time is over.
    mark = tmp_path / "pid"
    words = ["sh", "-c", 'echo $$ > "$MARK"; exec sleep 999']
    greeting = greet(words, {"MARK": str(mark)}, 5)
    assert greeting == Greeting(False, "it did not answer within 5 s")
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_a_command_that_does_not_exist_is_told() -> None:
    greeting = greet(["/no/such/python"], {})
    assert greeting.message == "/no/such/python cannot be started: No such file or directory"


def test_the_shell_does_not_lend_its_search_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/shell/only")
    program = "import os,sys; sys.exit(repr((os.environ.get('PYTHONPATH'), os.getcwd())))"
    assert "(None, '/')" in run(program).message
