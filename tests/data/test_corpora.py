"""Dataset configurations -> items: sources, row problems, draws, and the real corpus files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncu_exp.config import ColumnsConfig, Corpus, DatasetConfig, GoldContext, OnError
from ncu_exp.data.corpora import SkippedRow, content_sha256, load_items
from ncu_exp.errors import DataError
from ncu_exp.records import AnswerType, ContextSource, Item

from .raw import NQ_GOLD, SAMPLE, SQUAD_HUB


def local_file(path: Path, *records: dict[str, Any] | str) -> DatasetConfig:
    """A JSONL file of records and raw lines, and the configuration that reads it."""
    lines = (r if isinstance(r, str) else json.dumps(r, ensure_ascii=False) for r in records)
    path.write_text("\n".join(lines), encoding="utf-8")
    return DatasetConfig(name=Corpus.local, path=str(path))


def qa(number: int, **fields: Any) -> dict[str, Any]:
    return {"question": f"Which {number}?", "answer": "A", "context": f"A, {number}."} | fields


# --- the real files --------------------------------------------------------------------------

REAL = [
    (Corpus.nq, "nq_gold/nq-open-oracle.jsonl", 305, "row:0"),
    (Corpus.triviaqa, "triviaqa/rc.wikipedia.full_pages.jsonl", 6, "tc_3"),
    (Corpus.triviaqa, "triviaqa/rc.web.jsonl", 5, "tc_1"),
    (Corpus.hotpotqa, "hotpotqa/distractor.validation.jsonl", 200, "5a8b57f25542995d1e6f1371"),
    (
        Corpus.hotpotqa,
        "hotpotqa/official_dev_distractor.first103.json",
        103,
        "5a8b57f25542995d1e6f1371",
    ),
    (Corpus.squad, "squad/validation.jsonl", 300, "56d9992fdc89441400fdb59f"),
]


@pytest.mark.parametrize(("name", "file", "count", "first"), REAL)
def test_real_file_loads_whole(
    corpora: Path, name: Corpus, file: str, count: int, first: str
) -> None:
    loaded = load_items(DatasetConfig(name=name, path=str(corpora / file)))
    assert len(loaded.items) == loaded.total == count
    assert loaded.skipped == ()
    assert loaded.items[0].item_id == first
    assert len({item.item_id for item in loaded.items}) == count
    for item in loaded.items:
        assert item.corpus == name.value
        assert item.gold_passages
        assert item.question == item.question.strip() != ""
        assert all(answer == answer.strip() != "" for answer in item.answers)
        assert len(set(item.answers)) == len(item.answers)


def test_real_hotpotqa_is_the_same_in_both_forms(corpora: Path) -> None:
    hub, official = (
        load_items(DatasetConfig(name=Corpus.hotpotqa, path=str(corpora / file))).items
        for file in (
            "hotpotqa/distractor.validation.jsonl",
            "hotpotqa/official_dev_distractor.first103.json",
        )
    )
    by_id = {item.item_id: item for item in hub}
    shared = [item for item in official if item.item_id in by_id]
    assert len(shared) == 103
    assert all(by_id[item.item_id] == item for item in shared)
    assert Counter(item.kind for item in hub) == {"bridge/hard": 164, "comparison/hard": 36}
    assert Counter(len(item.gold_passages) for item in hub) == {2: 200}
    assert sum(item.answer_type is AnswerType.yes_no for item in hub) == 17


def test_real_nq_open_loads_with_the_template_alone(corpora: Path) -> None:
    config = DatasetConfig(name=Corpus.nq, path=str(corpora / "nq_open/validation.jsonl"))
    with pytest.raises(DataError, match=r"row 1, field 'ctxs'.*dataset\.context=template"):
        load_items(config)
    loaded = load_items(replace(config, context=GoldContext.template))
    assert len(loaded.items) == 3610
    assert {item.context_source for item in loaded.items} == {ContextSource.template}
    assert loaded.items[363].item_id == "row:363"
    assert loaded.items[363].answer == ")"
    assert loaded.items[290].answer == "---"


def test_real_rows_without_annotation(corpora: Path) -> None:
    path = corpora / "nq_open/no_annotations.jsonl"
    config = DatasetConfig(name=Corpus.nq, path=str(path), context=GoldContext.template)
    with pytest.raises(DataError, match="row 1, field 'answer': is missing; the row has: question"):
        load_items(config)
    with pytest.raises(DataError, match="none of the 100 rows gives an item"):
        load_items(replace(config, on_error=OnError.skip))


def test_real_trivia_excerpts_hold_one_empty_context(corpora: Path) -> None:
    path = corpora / "triviaqa/rc.wikipedia.excerpts.jsonl"
    config = DatasetConfig(name=Corpus.triviaqa, path=str(path))
    with pytest.raises(DataError, match=r"row 236, field 'entity_pages\.wiki_context'"):
        load_items(config)
    loaded = load_items(replace(config, on_error=OnError.skip))
    assert (len(loaded.items), loaded.total) == (247, 248)
    assert loaded.skipped == (
        SkippedRow(236, "entity_pages.wiki_context", "holds no gold context"),
    )
    by_id = {item.item_id: item for item in loaded.items}
    assert "\u0085" in by_id["sfq_6611"].question
    assert by_id["qw_15255"].question.startswith('"How many films')


def test_real_squad_fixture_has_an_unanswerable_question(corpora: Path) -> None:
    path = corpora / "squad/official_v2.fixture.json"
    config = DatasetConfig(name=Corpus.squad, path=str(path))
    with pytest.raises(DataError, match=r"row 1, field 'answers': is empty.*SQuAD 2\.0"):
        load_items(config)
    loaded = load_items(replace(config, on_error=OnError.skip))
    assert (len(loaded.items), len(loaded.skipped), loaded.total) == (5, 1, 6)
    # the id that the unanswerable question has too
    assert loaded.items[0].item_id == "5733be284776f41900661182"
    assert loaded.items[0].answer == "Saint Bernadette Soubirous"


def test_real_hard_cases_are_the_items_of_their_questions(corpora: Path) -> None:
    """Every hard case that has a usable row is found by its question, with its answer."""
    with (corpora / "hard_cases.jsonl").open("rb") as lines:
        cases = [json.loads(line) for line in lines]
    loaded: dict[str, dict[str, Item]] = {}
    missing = []
    for case in cases:
        file = case["corpus"]
        if file not in loaded:
            config = DatasetConfig(
                name=Corpus["nq" if file.startswith("nq") else file.split("/")[0]],
                path=str(corpora / file),
                context=GoldContext.template if "nq_open" in file else GoldContext.gold,
                on_error=OnError.skip,
            )
            try:
                loaded[file] = {item.question: item for item in load_items(config).items}
            except DataError:
                loaded[file] = {}
        item = loaded[file].get(case["question"].strip())
        if item is None:
            missing.append(case["kind"])
            continue
        stated = case["answer"] if isinstance(case["answer"], list) else [case["answer"]]
        assert item.answer == stated[0].strip()
        assert set(stated[1:]) <= set(item.answers)
    assert sorted(missing) == ["empty_answer_list", "empty_context", "missing_answer"]


# --- bad rows --------------------------------------------------------------------------------

BAD_ROWS = [
    ('{"question": "cut', "", "is not JSON"),
    ("[]", "", "is a list"),
    ({"answer": "A", "context": "A."}, "question", "is missing"),
    (qa(3, answer=""), "answer", "holds no answer"),
    (qa(3, answer=["", None]), "answer", "holds no answer"),
    (qa(3, context=" "), "context", "holds no gold context"),
    (qa(3, context=None), "context", "holds no gold context"),
    (qa(3, id="a"), "id", "'a' is the id of row 1 already"),
]


@pytest.mark.parametrize(("bad", "field", "reason"), BAD_ROWS)
def test_bad_row_fails_or_is_counted(
    tmp_path: Path, bad: dict[str, Any] | str, field: str, reason: str
) -> None:
    rows = [qa(1, id="a"), "", bad if isinstance(bad, str) else {"id": "b"} | bad, qa(4, id="d")]
    config = local_file(tmp_path / "my.jsonl", *rows)
    config.columns = ColumnsConfig(id="id")
    with pytest.raises(DataError) as caught:
        load_items(config)
    message = str(caught.value)
    where = f"field '{field}': " if field else ""
    assert message.startswith(f"{tmp_path / 'my.jsonl'}, row 3, {where}{reason}")
    assert "dataset.on_error=skip" in message

    config.on_error = OnError.skip
    loaded = load_items(config)
    assert [item.item_id for item in loaded.items] == ["a", "d"]
    assert loaded.total == 3
    (skipped,) = loaded.skipped
    assert (skipped.row, skipped.field) == (3, field)
    assert skipped.reason.startswith(reason)


def test_no_rows_and_no_usable_rows(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"my\.jsonl holds no rows"):
        load_items(local_file(tmp_path / "my.jsonl", "", ""))
    config = local_file(tmp_path / "my.jsonl", qa(1, answer=None), qa(2, context=None))
    config.on_error = OnError.skip
    with pytest.raises(DataError, match=r"none of the 2 rows .* Row 1, field 'answer'"):
        load_items(config)


@pytest.mark.parametrize("key", ["aliases", "title", "distractors", "kind"])
def test_optional_column_must_be_in_some_row(tmp_path: Path, key: str) -> None:
    config = local_file(tmp_path / "my.jsonl", qa(1), qa(2, extra="x"))
    config.columns = ColumnsConfig(**{key: "extra"})
    assert len(load_items(config).items) == 2
    config.columns = ColumnsConfig(**{key: "typo"})
    says = rf"no row has dataset\.columns\.{key}=typo; the columns are: answer, context, extra"
    with pytest.raises(DataError, match=says):
        load_items(config)


def test_source_that_is_not_set() -> None:
    with pytest.raises(DataError, match=r"dataset=squad has no source: set dataset\.path="):
        load_items(DatasetConfig(name=Corpus.squad))


# --- sources and draws -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["my.csv", "my.parquet", "my.json", "my.jsonl"])
def test_every_format_gives_the_same_items(tmp_path: Path, name: str) -> None:
    import pandas as pd

    records = [qa(1, alt="B|C", docs=["x", "y"]), qa(2, alt="", docs=["z"])]
    path = tmp_path / name
    frame = pd.DataFrame(records)
    if name.endswith("csv"):
        frame.assign(docs=frame["docs"].map(json.dumps)).to_csv(path, index=False)
    elif name.endswith("parquet"):
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=name.endswith("jsonl"))
    columns = ColumnsConfig(aliases="alt", context="docs")
    loaded = load_items(DatasetConfig(name=Corpus.local, path=str(path), columns=columns))
    assert [item.answers for item in loaded.items] == [("A", "B", "C"), ("A",)]
    assert [p.text for p in loaded.items[0].passages] == ["x", "y"]
    assert loaded.source == str(path)


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local_file(tmp_path / "my.jsonl", qa(1))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_items(DatasetConfig(name=Corpus.local, path="~/my.jsonl")).total == 1


def test_template_replaces_the_passages_of_any_corpus(tmp_path: Path) -> None:
    path = tmp_path / "qa.jsonl"
    path.write_text(json.dumps({k: v for k, v in SQUAD_HUB.items() if k != "context"}))
    config = DatasetConfig(name=Corpus.squad, path=str(path), context=GoldContext.template)
    (item,) = load_items(config).items
    assert [p.text for p in item.passages] == [
        'The answer to the question "When did it open?" is the 1880s.'
    ]


def test_sample_schema_reads_a_file_too(tmp_path: Path) -> None:
    path = tmp_path / "qa.jsonl"
    path.write_text(json.dumps(SAMPLE))
    (item,) = load_items(DatasetConfig(name=Corpus.sample, path=str(path))).items
    assert (item.corpus, item.item_id) == ("sample", "x-1")


def test_limit_draws_in_proportion_and_file_order(tmp_path: Path) -> None:
    kinds = ["a", "a", "b"] * 10
    config = local_file(tmp_path / "my.jsonl", *(qa(n, kind=k) for n, k in enumerate(kinds)))
    config.columns = ColumnsConfig(kind="kind")
    config.limit = 9
    drawn = load_items(config)
    assert Counter(item.kind for item in drawn.items) == {"a": 6, "b": 3}
    assert drawn.total == 30
    numbers = [int(item.item_id.removeprefix("row:")) for item in drawn.items]
    assert numbers == sorted(numbers)
    assert load_items(config) == drawn
    assert load_items(replace(config, seed=1)).sha256 != drawn.sha256
    assert len(load_items(replace(config, limit=99)).items) == 30


def test_sha256_is_over_the_content(tmp_path: Path) -> None:
    one = load_items(local_file(tmp_path / "my.jsonl", qa(1), qa(2)))
    copy = load_items(local_file(tmp_path / "copy.jsonl", qa(1), qa(2)))
    assert one.sha256 == copy.sha256
    assert one.sha256 == content_sha256(one.items)
    for change in ({"answer": "B"}, {"context": "B, 2."}, {"question": "?"}):
        changed = load_items(local_file(tmp_path / "my.jsonl", qa(1), qa(2, **change)))
        assert changed.sha256 != one.sha256


def test_sha256_is_the_same_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "qa.jsonl"
    path.write_text(json.dumps(NQ_GOLD))
    here = load_items(DatasetConfig(name=Corpus.nq, path=str(path))).sha256
    code = (
        "import sys; from ncu_exp.config import *; from ncu_exp.data.corpora import load_items; "
        "print(load_items(DatasetConfig(name=Corpus.nq, path=sys.argv[1])).sha256)"
    )
    command = [sys.executable, "-c", code, str(path)]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert there == here


def test_import_is_light() -> None:
    code = "import sys, ncu_exp.data.corpora; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "ncu_exp.data.corpora" in loaded
    assert not {"datasets", "pandas", "pyarrow", "numpy", "aiohttp", "torch"} & set(loaded)


def test_shards_share_out_what_was_drawn(tmp_path: Path) -> None:
    rows = [{"question": f"q{i}?", "answer": f"a{i}", "context": f"a{i}."} for i in range(11)]
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = DatasetConfig(name=Corpus.local, path=str(path), limit=10)
    whole = load_items(config)
    parts = [load_items(replace(config, shard=f"{part}/4")) for part in range(4)]
    assert [len(part.items) for part in parts] == [3, 3, 2, 2]
    ids = [item.item_id for part in parts for item in part.items]
    assert sorted(ids) == sorted(item.item_id for item in whole.items)
    assert {part.sha256 for part in parts} == {whole.sha256}
    assert all(list(part.drawn) == list(whole.items) for part in parts)
    with pytest.raises(DataError, match=r"dataset\.shard=10/11 has no item: there are 10"):
        load_items(replace(config, shard="10/11"))
