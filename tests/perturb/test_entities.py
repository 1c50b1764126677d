from __future__ import annotations

from collections.abc import Callable

import pytest

from ncu_exp.errors import PerturbationError
from ncu_exp.perturb.entities import answer_types, natural_core, noun_type
from ncu_exp.perturb.patterns import pattern_type
from ncu_exp.records import AnswerType, Item

MakeItem = Callable[..., Item]
MODEL = "en_core_web_sm"


@pytest.mark.parametrize(
    ("answer", "question", "expected"),
    [
        ("1966", "when was it written", "year"),
        ("1966", "how many steps are there", "number"),
        ("1977", "when was how deep is your love released", "year"),
        ("1871 A.D.", "when was it founded", "year"),
        ("14 December 1972 UTC", "when was it", "date"),
        ("2006–07", "when did they win", "date"),
        ("1780–1830", "when did it start and end", "date"),
        ("early 20th century", "when was it", "date"),
        ("1840s", "when was it", "date"),
        ("May", "when is it held", "date"),
        ("May", "who is she", None),
        ("second Sunday of March", "when does it change", "date"),
        ("8,850", "how long is it", "number"),
        ("five million", "what number", "number"),
        ("seven", "how many", "number"),
        ("332 members", "total number", "quantity"),
        ("19.3%", "what percentage", "quantity"),
        ("eight years", "the tenure", "quantity"),
        ("UTC−09:00", "what time is it", "quantity"),
        ("1169 cc", "what size engine", "quantity"),
        ("$7.2 million", "how much", "money"),
        ("15 million dollars", "how much", "money"),
        ("₹ 39.97 lakh", "first day collection", "money"),
        ("2009 Big 12 Conference", "which conference", None),
        ("April Kepner", "who becomes chief", None),
        ("Croatia", "where is it", None),
        ("", "", None),
    ],
)
def test_pattern_type(answer: str, question: str, expected: str | None) -> None:
    assert pattern_type(answer, question) == (expected and AnswerType(expected))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("In which city was he born?", "place"),
        ("What is the capital of Burgundy?", "place"),
        ("Menzies was which country's longest-serving Prime Minister?", "place"),
        ("Which American film director hosted the awards?", "person"),
        ("What is the name of the singer who's song was released?", "person"),
        ("Which band recorded it?", "organization"),
        ("For which 1993 film did he win?", "work_of_art"),
        ("What is the title of their first feature?", "work_of_art"),
        ("Which war made her famous?", "event"),
        ("What is it?", None),
        ("who sings it", None),
    ],
)
def test_noun_type(question: str, expected: str | None) -> None:
    assert noun_type(question) == (expected and AnswerType(expected))


@pytest.mark.parametrize(
    ("text", "answer", "question", "expected"),
    [
        ("The club plays at Old Trafford.", "Old Trafford", "where do they play", "place"),
        ("It was won by Roger Federer.", "Roger Federer", "who won the open", "person"),
        ("They fought Germany in the war.", "Germany", "who did they fight", "place"),
        ("He fought the British there.", "British", "who did he fight", "organization"),
        ("The song is by the Scorpions.", "The Scorpions", "who sings the song", "organization"),
        ("The President signs it.", "the President", "who signs it", "other"),
        ("Take Aspirin; aspirin helps.", "Aspirin", "who helps", "other"),
        ("It causes erosion there.", "erosion", "what process made it", "other"),
        ("It runs on State Route 41.", "State Route 41", "what road is it", "other"),
        ("He joined Virgin Media.", "Virgin Media", "what were they rebranded as", "organization"),
        ("The Congo River is deep.", "Congo River", "what flows there", "place"),
        ("Captain Flint squawks.", "yes", "Is it a parrot?", "yes_no"),
        ("You shout Yes.", "Yes", "what do you say when you win bingo", "other"),
    ],
)
def test_answer_type(
    make_item: MakeItem, text: str, answer: str, question: str, expected: str
) -> None:
    item = make_item(text, answer, question=question)
    assert answer_types([item], spacy_model=MODEL)[0] is AnswerType(expected)


def test_the_corpus_has_the_first_word(make_item: MakeItem) -> None:
    item = make_item("In 1966.", "1966", answer_type=AnswerType.event)
    assert answer_types([item], spacy_model="not_installed")[0] is AnswerType.event


def test_the_tagger_settles_what_the_question_leaves_open(make_item: MakeItem) -> None:
    text = "The prize went to Barack Obama in Oslo."
    person = make_item(text, "Barack Obama", question="the prize went to")
    place = make_item(text, "Oslo", question="the prize was given in")
    assert answer_types([person], spacy_model=MODEL)[0] is AnswerType.person
    assert answer_types([place], spacy_model=MODEL)[0] is AnswerType.place


def test_a_tagger_that_is_not_installed_says_how_to_get_it(make_item: MakeItem) -> None:
    item = make_item("It went to Barack Obama.", "Barack Obama", question="it went to")
    with pytest.raises(PerturbationError, match="spacy download xx_core_none"):
        answer_types([item], spacy_model="xx_core_none")[0]


@pytest.mark.parametrize(
    ("text", "answer", "aliases", "expected"),
    [
        ("by Steve Jobs", "STEVE JOBS", ("Jobs",), "Steve Jobs"),
        ("the Škoda works", "SKODA", (), "Škoda"),
        ("the EEC was", "EEC", ("Eec",), "EEC"),
        ("", "JAPAN", ("Japan",), "Japan"),
        ("", "SCHINDLER'S LIST", (), "Schindler's List"),
        ("", "LSD", (), "LSD"),
        ("to the Red Sea", "Red sea", (), "Red Sea"),
        ("by Giancarlo Stanton", "Stanton, Giancarlo", ("Giancarlo Stanton",), "Giancarlo Stanton"),
        ("Hydrogen is", "hydrogen", (), "hydrogen"),
        ("in the early 1800s", "early 1800s", (), "early 1800s"),
    ],
)
def test_natural_core(
    make_item: MakeItem, text: str, answer: str, aliases: tuple[str, ...], expected: str
) -> None:
    assert natural_core(make_item(text, answer, *aliases)) == expected
