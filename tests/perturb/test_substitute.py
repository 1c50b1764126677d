from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_exp.perturb.inventors import Fabrication
from ncu_exp.perturb.mentions import find_mentions
from ncu_exp.perturb.shortforms import ShortForm
from ncu_exp.perturb.substitute import agree, as_asked, substitute


def put(text: str, answers: list[str], core: str, question: str = "", **fields: Any) -> str:
    made = Fabrication(core, **fields)
    perturbed, spans = substitute(text, find_mentions(text, answers), made, question=question)
    rebuilt, position = "", 0
    for span in spans:
        assert text[span.start : span.end] == span.original
        rebuilt += text[position : span.start] + span.replacement
        position = span.end
    assert rebuilt + text[position:] == perturbed
    return perturbed


@pytest.mark.parametrize(
    ("text", "answers", "core", "expected"),
    [
        ("Croatia's coast, Croatian law", ["Croatia"], "Peru", "Peru's coast, Croatian law"),
        ("Kiss’s song, a KISS fan", ["Kiss"], "Long", "Long’s song, a Long fan"),
        ("THE STEVE JOBS STORY: Steve Jobs", ["Steve Jobs"], "Al Roe", "THE AL ROE STORY: Al Roe"),
        ("a lion, an owl", ["lion", "owl"], "otter", "an otter, an otter"),
        ("An owl. A union; an hour", ["owl"], "cat", "A cat. A union; an hour"),
        ("the Yankees, their Yankees", ["The Yankees"], "Foxes", "the Foxes, their Foxes"),
        ("in South America", ["in South America"], "Africa", "in Africa"),
        ("Hydrogen and hydrogen", ["hydrogen"], "neon", "Neon and neon"),
        ("in Utah, Ohio and Iowa; Utah", ["Utah", "Ohio", "Iowa"], "Peru", "in Peru; Peru"),
        ("Utah, Utah", ["Utah"], "Peru", "Peru, Peru"),
        ("vitamin a lion", ["lion"], "emu", "vitamin an emu"),
    ],
)
def test_one_replacement_each(text: str, answers: list[str], core: str, expected: str) -> None:
    assert put(text, answers, core) == expected


def test_common_words_take_their_case_from_the_text() -> None:
    assert (
        put("Drifting is drifting", ["Drifting"], "Weaving", is_common=True) == "Weaving is weaving"
    )


def test_short_forms_are_replaced_by_the_matching_part() -> None:
    text = "Charles Darwin sailed. Darwin's notes; DARWIN; Darwinian; darwin"
    parts = (ShortForm("Darwin", "Reese"),)
    expected = "Ryan Reese sailed. Reese's notes; REESE; Darwinian; darwin"
    assert put(text, ["Charles Darwin"], "Ryan Reese", parts=parts) == expected


def test_short_forms_that_may_name_another_thing_are_left() -> None:
    parts = (ShortForm("Darwin", "Reese"), ShortForm("Charles", "Ryan", is_ambiguous=True))
    text = "Charles Darwin knew Charles Lyell. Charles wrote."
    assert put(text, ["Charles Darwin"], "Ryan Reese", parts=parts) == (
        "Ryan Reese knew Charles Lyell. Charles wrote."
    )
    text = "Charles Darwin came. Charles wrote."
    assert (
        put(text, ["Charles Darwin"], "Ryan Reese", parts=parts) == "Ryan Reese came. Ryan wrote."
    )


def test_what_has_an_article_is_no_given_name() -> None:
    parts = (ShortForm("Mark", "Jude", is_ambiguous=True),)
    text = "Mark Twain left the Mark."
    assert put(text, ["Mark Twain"], "Jude Reed", parts=parts) == "Jude Reed left the Mark."


def test_a_short_form_that_the_question_holds_is_left() -> None:
    parts = (ShortForm("Kaiser", "Kirby"),)
    text = "Kaiser Ventures was founded by Henry J. Kaiser."
    assert put(
        text, ["Henry J. Kaiser"], "Jose S. Kirby", "who founded kaiser ventures", parts=parts
    ) == ("Kaiser Ventures was founded by Jose S. Kirby.")


def test_everyday_surnames_stay_where_they_are_part_of_another_name() -> None:
    parts = (ShortForm("Washington", "Reed"),)
    text = "George Washington fought. Washington, D.C. is near. Washington won."
    assert "Washington, D.C." in put(text, ["George Washington"], "Tom Reed", parts=parts)


def test_the_longest_form_wins_over_a_mention_inside_it() -> None:
    parts = (ShortForm("April Kepner", "Kim Smith"),)
    spellings = {"Kepner": "Smith"}
    text = "April Kepner and Kepner"
    made = put(text, ["Kepner"], "Kim Smith", parts=parts, spellings=spellings)
    assert made == "Kim Smith and Smith"


def test_the_whole_name_is_written_at_the_first_mention() -> None:
    made = put("Kepner came. Kepner left.", ["Kepner"], "Kim Smith", spellings={"Kepner": "Smith"})
    assert made == "Kim Smith came. Smith left."


def test_a_date_is_asked_for_as_the_text_has_it() -> None:
    spellings = {"December 1972": "March 1962"}
    made = Fabrication("19 March 1962", spellings, is_numeric=True)
    mentions = find_mentions("in December 1972", ["14 December 1972", "December 1972"])
    assert as_asked(made, mentions).core == "March 1962"
    mentions = find_mentions("on 14 December 1972", ["14 December 1972", "December 1972"])
    assert as_asked(made, mentions) == made
    year = Fabrication("1962", {"14 December 1972": "19 March 1962"}, is_numeric=True)
    assert as_asked(year, mentions) == year  # it stands in the date


def test_a_number_in_words_takes_its_case_from_the_text() -> None:
    assert put("Seven met seven.", ["Seven"], "Fifteen", is_numeric=True) == "Fifteen met fifteen."


@pytest.mark.parametrize(
    ("word", "article"),
    [
        ("orchard", "an"),
        ("lantern", "a"),
        ("hour", "an"),
        ("university", "a"),
        ("European", "a"),
        ("one-way", "a"),
        ("unmanned", "an"),
        ("Usher", "an"),
        ("NBA", "an"),
        ("UTC", "a"),
        ("8", "an"),
        ("11", "an"),
        ("110", "a"),
    ],
)
def test_a_or_an(word: str, article: str) -> None:
    assert agree("a", word) == article
    assert agree("An", word) == article.capitalize()


FILL = st.text(alphabet="bcd éß.;:!?\n\u00a0東", max_size=25)


@given(
    st.lists(FILL, min_size=2, max_size=8), st.sampled_from(["Škoda", "Monk’s", "New York", "1966"])
)
def test_planted_mentions_are_replaced_and_the_rest_stays_byte_for_byte(
    fills: list[str], name: str
) -> None:
    text = f" ({name}) ".join(fills)
    assert put(text, [name], "Quux") == " (Quux) ".join(fills)
