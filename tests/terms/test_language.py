"""Which language a question is written in, and that an answer says when no page is."""

import pytest

from sage.terms.languages import language_of
from tests.conftest import Base

QUESTIONS = {
    "Wie lange warten wir auf die Antwort eines anderen Dienstes?": "German",
    "Regeln für Shell-Skripte": "German",
    "Pourquoi la base de données est-elle lente ?": "French",
    "¿Cómo se configura la caché?": "Spanish",
    "Por que os testes não são estáveis?": "Portuguese",
    "Perché i test sono instabili?": "Italian",
    "Waarom is het zo langzaam?": "Dutch",
    "Dlaczego testy są niestabilne?": "Polish",
    "Testler nasıl yazılır?": "Turkish",
    "Как настроить кэш для сервиса?": "Russian",
    "数据库连接池耗尽": "Chinese",
    "HTTP 接口应该如何设计？": "Chinese",
    "キャッシュの設定方法": "Japanese",
    "캐시를 어떻게 설정하나요": "Korean",
}
PAGES = {"core/a.md": "# Cache\n\nKeep the answer of another service for an hour.\n"}


@pytest.mark.parametrize(("question", "language"), QUESTIONS.items())
def test_a_question_is_in_the_language_of_its_small_words(question: str, language: str) -> None:
    assert language_of(question) == language


@pytest.mark.parametrize(
    "question",
    [
        "how do I configure the cache",
        "connection pool exhaustion",
        "MIT license DER certificate EST timezone los angeles",
        "eine_variable oder.und.nicht --wie `warum`",
        'why is "北京市" cut in the middle',
        "def für(x): return x",
        "Straße in São Paulo",
        "git bisect run",
        "",
        "42 ___ ::",
    ],
)
def test_names_and_quotes_are_no_other_language(question: str) -> None:
    assert language_of(question) == ""


def test_the_note_says_that_no_page_is_written_in_the_language_of_the_question(base: Base) -> None:
    knowledge = base.open(PAGES)
    answer = knowledge.search("Wie lange warten wir auf die Antwort?")
    assert "no page is written in German" in answer["note"]
    assert "no page is written in Chinese" in knowledge.search("缓存应该保存多久")["note"]
    assert "written in" not in knowledge.search("how long do we wait").get("note", "")


def test_a_page_in_that_language_needs_no_note(base: Base) -> None:
    text = "# Zwischenspeicher\n\nWir heben eine Antwort auf und fragen nicht noch einmal.\n"
    knowledge = base.open(PAGES | {"core/b.md": text})
    assert "written in" not in knowledge.search("Wie starte ich den Dienst?").get("note", "")
    assert "no page is written in French" in knowledge.search("Pourquoi est-ce lent ?")["note"]
