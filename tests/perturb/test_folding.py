from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_exp.perturb.folding import fold, fold_text, script


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Škoda", "SKODA"),
        ("S\u030ckoda", "skoda"),  # the caron as a character of its own
        ("Monk’s", "Monk's"),
        ("“Acid rain”", '"acid rain"'),
        ("2006–07", "2006-07"),
        ("UTC−09:00", "UTC-09:00"),
        ("March\u00a010,\u20092017", "March 10, 2017"),
        ("Hydro\u00adgen", "hydrogen"),
        ("New\u200b York\ufeff", "new york"),
        ("Ｑ", "q"),
        ("Straße", "STRASSE"),
        ("Łódź", "lodz"),
        ("Ærøskøbing", "aeroskobing"),
    ],
)
def test_what_reads_alike_is_folded_alike(left: str, right: str) -> None:
    assert fold_text(left) == fold_text(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [("कि", "कु"), ("か", "が"), ("하", "한"), ("10", "10²"), ("resume", "resumes")],
)
def test_what_reads_differently_stays_apart(left: str, right: str) -> None:
    assert fold_text(left) != fold_text(right)


@given(st.text())
def test_every_folded_character_knows_its_original(text: str) -> None:
    folded = fold(text)
    assert len(folded.starts) == len(folded.text)
    assert list(folded.starts) == sorted(folded.starts)
    for index in range(len(folded.text)):
        first, last = folded.original_span(index, index + 1)
        assert folded.text[index] in fold(text[first:last]).text


def test_the_span_takes_the_accents_that_follow() -> None:
    text = "Cafe\u0301 noir"
    first, last = fold(text).original_span(0, 4)
    assert unicodedata.normalize("NFC", text[first:last]) == "Café"


@pytest.mark.parametrize(
    ("char", "kind"),
    [
        ("a", "spaced"),
        ("я", "spaced"),
        ("7", "spaced"),
        ("½", "spaced"),
        ("東", "han"),
        ("の", "hiragana"),
        ("ー", "katakana"),
        ("서", "hangul"),
        ("ก", "thai"),
        ("-", ""),
        ("。", ""),
        ("・", ""),
    ],
)
def test_script(char: str, kind: str) -> None:
    assert script(char) == kind
