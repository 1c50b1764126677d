"""Each public corpus's own schema -> Item (pure): the hub's columns and the official releases.

A schema is two functions of a row: `item` reads question, answers and id, `passages` the
evidence. They are apart because `dataset.context=template` needs no evidence. Both raise
`RowProblem`, naming the field. Texts are stripped and otherwise left as the corpus has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from ncu_exp.data.rows import (
    Fields,
    Row,
    RowProblem,
    as_passage_text,
    as_records,
    as_text,
    as_texts,
    required_text,
    split_answers,
    take,
)
from ncu_exp.records import AnswerType, ContextSource, Item, Passage


@dataclass(frozen=True, slots=True)
class Schema:
    """How one corpus is read.

    `rows` takes nested records apart. `some_row_has` names columns that single rows may lack, but
    not all of them: config key -> column.
    """

    item: Callable[[Row], Item]
    passages: Callable[[Row], tuple[Passage, ...]]
    rows: Callable[[Iterator[Row]], Iterator[Row]] = iter
    some_row_has: tuple[tuple[str, str], ...] = ()


def corpus_item(schema: Schema, row: Row) -> Item:
    """The item with the corpus's own passages; RowProblem where no gold passage has a text."""
    return replace(schema.item(row), passages=schema.passages(row))


def template_item(schema: Schema, row: Row) -> Item:
    """The item with one sentence that states the answer, instead of the corpus's passages."""
    item = schema.item(row)
    stop = "" if item.answer.endswith((".", "!", "?")) else "."
    sentence = f'The answer to the question "{item.question}" is {item.answer}{stop}'
    passages = (Passage(title="", text=sentence),)
    return replace(item, passages=passages, context_source=ContextSource.template)


def with_gold(passages: list[Passage], field: str) -> tuple[Passage, ...]:
    """The passages that have a text; RowProblem where no gold one is left."""
    written = tuple(p for p in passages if p.text.strip())
    if not any(p.is_gold for p in written):
        raise RowProblem(field, "holds no gold context")
    return written


# --- the bundled sample ----------------------------------------------------------------------


def _sample_item(row: Row) -> Item:
    answer_type = required_text(row.fields, "answer_type")
    answer = required_text(row.fields, "answer")
    others = as_texts(take(row.fields, "aliases"), "aliases")
    if answer_type not in AnswerType.__members__:
        raise RowProblem("answer_type", f"'{answer_type}' is none of {', '.join(AnswerType)}")
    return Item(
        item_id=required_text(row.fields, "id"),
        corpus="sample",
        question=required_text(row.fields, "question"),
        answer=answer,
        aliases=split_answers((answer, *others), "answer")[1],
        kind=required_text(row.fields, "kind"),
        answer_type=AnswerType(answer_type),
    )


def _sample_passages(row: Row) -> tuple[Passage, ...]:
    records = as_records(take(row.fields, "passages"), "passages")
    return with_gold([passage_of(record, "passages") for record in records], "passages")


def passage_of(record: Fields, field: str) -> Passage:
    """A record {title, text, is_gold} as a passage; without `is_gold` it is a gold one."""
    is_gold = record.get("is_gold", True)
    if not isinstance(is_gold, bool):
        raise RowProblem(f"{field}.is_gold", f"is {is_gold!r}, true or false is needed")
    return Passage(
        title=as_text(record.get("title"), f"{field}.title"),
        text=as_passage_text(take(record, "text", within=field), f"{field}.text"),
        is_gold=is_gold,
    )


# --- Natural Questions -----------------------------------------------------------------------


def _nq_item(row: Row) -> Item:
    """`answers` in the gold-passage files, `answer` in NQ-Open; the id is the 0-based row."""
    field = "answers" if "answers" in row.fields else "answer"
    answer, aliases = split_answers(as_texts(take(row.fields, field), field), field)
    return Item(
        item_id=f"row:{row.number - 1}",
        corpus="nq",
        question=required_text(row.fields, "question"),
        answer=answer,
        aliases=aliases,
    )


def _nq_passages(row: Row) -> tuple[Passage, ...]:
    if "ctxs" not in row.fields:
        raise RowProblem(
            "ctxs",
            "is missing: NQ-Open itself carries no context. Give a file with gold passages "
            "(question, answers, ctxs with isgold), or set dataset.context=template",
        )
    passages = [
        Passage(
            title=as_text(record.get("title"), "ctxs.title"),
            text=as_passage_text(take(record, "text", within="ctxs"), "ctxs.text"),
            is_gold=record.get("isgold") is True,
        )
        for record in as_records(row.fields["ctxs"], "ctxs")
    ]
    return with_gold(passages, "ctxs")


# --- TriviaQA --------------------------------------------------------------------------------


def _trivia_item(row: Row) -> Item:
    """The hub's lower-case names, or the official release's (QuestionId, Answer.Value)."""
    fields = row.fields
    if "QuestionId" in fields:
        fields = {
            "question": fields.get("Question"),
            "question_id": fields["QuestionId"],
            "answer": {key.lower(): v for key, v in _mapping(fields, "Answer").items()},
        }
    gold = _mapping(fields, "answer")
    value = as_text(gold.get("value"), "answer.value")
    if not value:
        raise RowProblem("answer.value", "is empty")
    aliases = as_texts(gold.get("aliases"), "answer.aliases")
    answer, aliases = split_answers((value, *aliases), "answer.value")
    return Item(
        item_id=required_text(fields, "question_id"),
        corpus="triviaqa",
        question=required_text(fields, "question"),
        answer=answer,
        aliases=aliases,
        kind=as_text(gold.get("type"), "answer.type"),
    )


def _mapping(fields: Fields, name: str) -> Mapping[str, Any]:
    value = take(fields, name)
    if not isinstance(value, Mapping):
        raise RowProblem(name, "is not a record")
    return value


def _trivia_passages(row: Row) -> tuple[Passage, ...]:
    """Every evidence document: Wikipedia pages (rc.wikipedia), then web pages (rc.web)."""
    if "EntityPages" in row.fields or "SearchResults" in row.fields:
        raise RowProblem(
            "EntityPages",
            "the official release keeps the texts of its pages in separate files; use the hub's "
            "schema (rc.wikipedia or rc.web), or set dataset.context=template",
        )
    passages = [
        Passage(
            title=as_text(record.get("title"), f"{field}.title"),
            text=as_passage_text(record.get(text), f"{field}.{text}"),
        )
        for field, text in (("entity_pages", "wiki_context"), ("search_results", "search_context"))
        for record in as_records(row.fields.get(field), field)
    ]
    return with_gold(passages, "entity_pages.wiki_context")


# --- HotpotQA --------------------------------------------------------------------------------


def _hotpot_item(row: Row) -> Item:
    """The hub's `id`, or the official release's `_id`; yes and no are its two closed answers."""
    answer = required_text(row.fields, "answer")
    parts = (as_text(row.fields.get(name), name) for name in ("type", "level"))
    return Item(
        item_id=required_text(row.fields, "_id" if "_id" in row.fields else "id"),
        corpus="hotpotqa",
        question=required_text(row.fields, "question"),
        answer=answer,
        kind="/".join(part for part in parts if part),
        answer_type=AnswerType.yes_no if answer in ("yes", "no") else None,
    )


def _hotpot_passages(row: Row) -> tuple[Passage, ...]:
    """Gold are the paragraphs that the supporting facts name; all of them must be there."""
    facts = _pairs(row, "supporting_facts", "title", "sent_id")
    gold = {as_text(title, "supporting_facts.title") for title, _ in facts}
    if not gold:
        raise RowProblem("supporting_facts", "names no paragraph")
    passages = [
        _paragraph(as_text(title, "context.title"), sentences, gold=gold)
        for title, sentences in _pairs(row, "context", "title", "sentences")
    ]
    absent = gold - {p.title for p in passages if p.text.strip()}
    if absent:
        raise RowProblem("context", f"lacks the supporting paragraphs {', '.join(sorted(absent))}")
    return with_gold(passages, "context")


def _paragraph(title: str, sentences: object, *, gold: set[str]) -> Passage:
    """Sentences carry their own leading spaces, so that they are joined by nothing."""
    if not isinstance(sentences, list):
        raise RowProblem("context.sentences", "is not a list of texts")
    text = "".join(as_passage_text(sentence, "context.sentences") for sentence in sentences)
    return Passage(title=title, text=text, is_gold=title in gold)


def _pairs(row: Row, field: str, first: str, second: str) -> list[tuple[Any, Any]]:
    """The hub's columns or records, or the official release's pairs, as pairs."""
    value = take(row.fields, field)
    if isinstance(value, list) and all(isinstance(v, list) and len(v) == 2 for v in value):
        return [(v[0], v[1]) for v in value]
    return [
        (take(r, first, within=field), take(r, second, within=field))
        for r in as_records(value, field)
    ]


# --- SQuAD -----------------------------------------------------------------------------------


def _squad_rows(rows: Iterator[Row]) -> Iterator[Row]:
    """The official release's articles as one row per question, counted through the file."""
    count = 0
    for row in rows:
        if "paragraphs" not in row.fields:
            yield row
            continue
        for question in _questions(row):
            count += 1
            yield replace(question, number=count)


def _questions(article: Row) -> Iterator[Row]:
    try:
        for paragraph in as_records(article.fields["paragraphs"], "paragraphs"):
            shared = {"title": article.fields.get("title"), "context": paragraph.get("context")}
            for question in as_records(paragraph.get("qas"), "paragraphs.qas"):
                yield replace(article, fields={**shared, **question})
    except RowProblem as problem:
        yield replace(article, fields={}, malformed=str(problem))


def _squad_item(row: Row) -> Item:
    texts = [r.get("text") for r in as_records(take(row.fields, "answers"), "answers")]
    if not texts:
        raise RowProblem("answers", "is empty: a question without an answer (SQuAD 2.0)")
    answer, aliases = split_answers(as_texts(texts, "answers.text"), "answers.text")
    return Item(
        item_id=required_text(row.fields, "id"),
        corpus="squad",
        question=required_text(row.fields, "question"),
        answer=answer,
        aliases=aliases,
    )


def _squad_passages(row: Row) -> tuple[Passage, ...]:
    """Titles are pieces of a URL there ("Super_Bowl_50", "Beyonc%C3%A9"), and become text."""
    title = unquote(as_text(row.fields.get("title"), "title")).replace("_", " ")
    text = as_passage_text(take(row.fields, "context"), "context")
    return with_gold([Passage(title=title, text=text)], "context")


SAMPLE = Schema(item=_sample_item, passages=_sample_passages)
NQ = Schema(item=_nq_item, passages=_nq_passages)
TRIVIAQA = Schema(item=_trivia_item, passages=_trivia_passages)
HOTPOTQA = Schema(item=_hotpot_item, passages=_hotpot_passages)
SQUAD = Schema(item=_squad_item, passages=_squad_passages, rows=_squad_rows)
