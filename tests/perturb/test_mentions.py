from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_exp.perturb.mentions import Mention, find_inside_words, find_lookalikes, find_mentions


def found(text: str, *answers: str) -> list[str]:
    return [text[m.start : m.end] for m in find_mentions(text, answers)]


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("Croatia, Croatian, Croatia's and Croatia’s", "Croatia", ["Croatia"] * 3),
        ("The Škoda, a SKODA, a Škodas", "SKODA", ["Škoda", "SKODA"]),
        ("a surface and a face; Face to face, face-to-face", "face", ["face", "Face", "face"]),
        ("norepinephrine or epinephrine", "epinephrine", ["epinephrine"]),
        ("York, Yorkshire and Yorkists in New York.", "York", ["York", "York"]),
        ("ferrous and non-ferrous metals", "ferrous", ["ferrous"]),
        ("O'Brien met Brien", "Brien", ["Brien"]),
        ("Kissin' Time by Kiss", "Kiss", ["Kiss"]),
        ("Paris-based, pro-Paris, Paris–London", "Paris", ["Paris"] * 3),
        ("Austria-Hungary", "Hungary", ["Hungary"]),
        ("Henry Campbell-Bannerman", "Campbell Bannerman", ["Campbell-Bannerman"]),
        ("Hydrogen is hydrogen", "Hydro\u00adgen", ["Hydrogen", "hydrogen"]),
        ("on March\u00a010,\n2017.", "March 10, 2017", ["March\u00a010,\n2017"]),
        ("March 10,\n\n2017", "March 10, 2017", []),  # a paragraph ends in between
        ("Teen Titans Go! and Teen Titans Go", "Teen Titans Go!", None),
        ("Russia (top) and Russian", "Russia\u00a0(", ["Russia"]),
        ("the film (2006–07), of 2006-07", "(2006–07)", ["2006–07", "2006-07"]),
        ("J.K. Rowling and vitamin K.", "K", ["K"]),
        ("www.apple.com or apple", "apple", ["apple"]),
    ],
)
def test_whole_words(text: str, answer: str, expected: list[str] | None) -> None:
    assert found(text, answer) == (
        ["Teen Titans Go!", "Teen Titans Go"] if expected is None else expected
    )


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("7", "2017, 27, 7th, 7.5, 7,000, 1.7, 17:07, 7:30, 6-7, 7-6, 7½, A7"),
        ("7", "$7, −7, 7 million, 7 October 2017, October 7, 2/7, F-7"),
        ("6", "1.6 or 6,000 or UTC-06:00 or UTC−6"),
        ("six", "sixteen, twenty-six, six hundred, one hundred and six, sixty"),
        ("2006", "in 2006-07 and 2006/07, 12006, 2006.5"),
        ("100", "$100 and 1,100"),
    ],
)
def test_no_number_inside_another(answer: str, text: str) -> None:
    assert found(text, answer) == []


@pytest.mark.parametrize(
    ("answer", "text", "count"),
    [
        ("7", "7 episodes; the 7, (7) 7. 7% and a 7-year plan", 6),
        ("six", "six, a six-year plan, Six", 3),
        ("1966", "1966, 1966–1970, mid-1966, 1964-1966, May 1966", 5),
        ("$100", "$100 and US$100, not $1000 or $100,000", 2),
        ("17 seconds", "17 seconds left, 117 seconds gone", 1),
    ],
)
def test_numbers_that_stand_alone(answer: str, text: str, count: int) -> None:
    assert len(found(text, answer)) == count


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("日本国の首都は東京です。", "東京", ["東京"]),
        ("日本国", "日", []),  # a single ideograph among others
        ("東京は日", "日", ["日"]),
        ("スマートフォンとフォン", "フォン", ["フォン"]),
        ("2017年に", "2017", ["2017"]),
        ("서울은 한국의 수도이다. 서울대", "서울", ["서울"]),
        ("กรุงเทพเป็นเมือง", "กรุงเทพ", ["กรุงเทพ"]),
        ("Москва и московский, МОСКВА", "Москва", ["Москва", "МОСКВА"]),
        ("किताब और कि", "कि", ["कि"]),
        ("القاهرة عاصمة", "القاهرة", ["القاهرة"]),
    ],
)
def test_scripts(text: str, answer: str, expected: list[str]) -> None:
    assert found(text, answer) == expected


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("a kiss by Kiss, KISS", "Kiss", ["Kiss", "KISS"]),
        ("tell us, Us, the US. US troops", "US", ["US", "US"]),
        ("It is late. He read It at night.", "It", ["It"]),
        ("no, No", "no", []),
        ("a cat, A cat", "(a", []),
        ("a vitamin A pill. A cat", "A", ["A"]),
        ("the office, The Office, their Office", "The Office", ["The Office", "Office"]),
        ("a leg, Leg", "leg", ["leg", "Leg"]),
    ],
)
def test_short_and_common_answers_need_their_capitals(
    text: str, answer: str, expected: list[str]
) -> None:
    assert found(text, answer) == expected


def test_lookalikes_are_found_in_any_case_but_for_function_words() -> None:
    text = "a kiss by Kiss for us in the US"
    assert [m.matched_answer for m in find_lookalikes(text, ["Kiss", "US"])] == [
        "Kiss",
        "Kiss",
        "US",
    ]


def test_the_longest_mention_wins_and_the_rest_do_not_overlap() -> None:
    answers = [
        "Vasari",
        "Giorgio Vasari",
        "Federico Zuccari",
        "Giorgio Vasari and Federico Zuccari",
    ]
    text = "Giorgio Vasari and Federico Zuccari painted; Vasari died first."
    assert found(text, *answers) == ["Giorgio Vasari and Federico Zuccari", "Vasari"]


def test_leading_articles_and_prepositions_may_be_there_or_not() -> None:
    text = "the Yankees and their Yankees; the retina, In the retina"
    assert found(text, "The Yankees") == ["the Yankees", "Yankees"]
    assert found(text, "in the retina") == ["retina", "In the retina"]


def test_possessives_stay_outside_unless_they_are_the_name() -> None:
    assert found("Zappa's, Zappa’s", "Zappa", "Zappa's") == ["Zappa", "Zappa"]
    assert found("at Monk's, at Monk's Café", "Monk’s", "Monk's Café") == ["Monk's", "Monk's Café"]


def test_the_full_stop_of_an_abbreviation_stays_where_it_ends_a_paragraph() -> None:
    assert found("the U.S. Army in the U.S.\nEnd", "U.S.") == ["U.S.", "U.S"]


def test_answers_without_a_word_character_are_nowhere() -> None:
    assert found("a ) and --- and 🏀", ")", "---", "🏀", "") == []


def test_inside_words_names_the_words() -> None:
    text = "Croatian law of 2017, the surface and Croatia"
    assert find_inside_words(text, ["Croatia", "face", "7"]) == ["Croatian", "surface", "2017"]


NAMES = st.sampled_from(["Škoda", "New York", "Monk’s Café", "John Ernest Crawford", "東京"])
FILL = st.text(alphabet="xyz äé.,;:!?()\n", max_size=30)


@given(NAMES, st.lists(FILL, min_size=2, max_size=6))
def test_planted_mentions_are_found_with_their_offsets(name: str, fills: list[str]) -> None:
    text = f" {name}, ".join(fills)
    expected = [m.start() for m in re.finditer(re.escape(name), text)]
    mentions = find_mentions(text, [name])
    assert [m.start for m in mentions] == expected
    assert all(text[m.start : m.end] == name for m in mentions)


@given(st.text(max_size=60), st.lists(st.text(max_size=8), max_size=4))
def test_mentions_are_ordered_disjoint_and_within_any_text(text: str, answers: list[str]) -> None:
    mentions = find_mentions(text, answers)
    assert all(isinstance(m, Mention) and m.matched_answer in answers for m in mentions)
    bounds = [offset for m in mentions for offset in (m.start, m.end)]
    assert bounds == sorted(bounds)
    assert all(0 <= m.start < m.end <= len(text) for m in mentions)
