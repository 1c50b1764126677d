"""The page of a comparison: the finding, its tables, and every item to look into.

One self-contained HTML file with plotly.js in it, which makes no request and needs no storage, as
MLflow shows it in a sandboxed frame. Data travel as JSON in a block of their own, and the script
puts texts into the page as texts, never as markup.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ncu_exp.formulas import NEAR_ZERO
from ncu_exp.records import sha256_text
from ncu_exp.report import Piece, inline, shorten, template

if TYPE_CHECKING:
    import pandas as pd
    from markupsafe import Markup

DRAWN_ITEMS = 3_000  # points per system; those with details first, then by the hash of their id
FOLDED_ROWS = 40  # a longer table is folded away
_SCRIPTS = ("comparison.js", "comparison_plot.js", "comparison_item.js", "comparison_list.js")
_UNSAFE = re.compile(r"[<>&\u2028\u2029\ud800-\udfff]")  # in a script block, or not UTF-8 at all

_Key = tuple[str, str]  # corpus and item


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table made ready elsewhere; the first cell of a row names the row.

    A cell that ends in `[…]` has that as a smaller line of its own.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class ItemRow:
    """What one system made of an item under one condition and one scored answer.

    NaN is missing. A surprisal (nats per token) or NCU that is only bounded is NaN and has a lower
    and an upper end; a token's log-probability that is only bounded is NaN and has an upper one.
    `greedy_text` is None where none was asked for.
    """

    system: str
    condition: str
    continuation: str
    text: str
    status: str
    reason: str = ""
    surprisal_nats: float = math.nan
    surprisal_lower: float = math.nan
    surprisal_upper: float = math.nan
    ncu: float = math.nan
    ncu_lower: float = math.nan
    ncu_upper: float = math.nan
    em: float = math.nan
    greedy_text: str | None = None
    token_ids: tuple[int, ...] = ()
    token_logprobs: tuple[float, ...] = ()
    token_logprobs_upper: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemDetail:
    """An item with its contexts in pieces and the rows of every system."""

    corpus: str
    item_id: str
    question: str
    answer: str
    original: tuple[Piece, ...]
    perturbed: tuple[Piece, ...] | None
    fabricated: str | None
    rows: tuple[ItemRow, ...]
    aliases: tuple[str, ...] = ()


def item_row(system: str, record: Mapping[Any, Any]) -> ItemRow:
    """A record of a run's table (`ncu_exp.tables.DTYPES`) as the page shows it."""
    return ItemRow(
        system=system,
        condition=str(record["condition"]),
        continuation=str(record["continuation"]),
        text=_told(record["text"]) or "",
        status=str(record["status"]),
        reason=_told(record["reason"]) or "",
        surprisal_nats=float(record["surprisal_nats"]),
        surprisal_lower=-float(record["mean_logprob_upper"]),
        surprisal_upper=-float(record["mean_logprob_lower"]),
        ncu=float(record["ncu"]),
        ncu_lower=float(record["ncu_lower"]),
        ncu_upper=float(record["ncu_upper"]),
        em=float(record["em"]),
        greedy_text=_told(record["greedy_text"]),
        token_ids=_all(record["token_ids"]),
        token_logprobs=_all(record["token_logprobs"]),
        token_logprobs_upper=_all(record["token_logprobs_upper"]),
    )


def render_comparison(
    *,
    title: str,
    sentences: Sequence[str],
    notes: Sequence[str],
    facts: Mapping[str, str],
    tables: Sequence[PageTable],
    items: pd.DataFrame,
    details: Sequence[ItemDetail],
    figures: Mapping[str, bytes],
    default_system: str = "",
    alternatives: Mapping[str, str] | None = None,
) -> str:
    """The page as HTML text.

    `sentences` tell the finding, the first of them in a line; `notes` what differs or was left
    out. `items` has the columns system, corpus, item_id, s_prior (nats per token), ncu, ncu_lower,
    ncu_upper and em, a row per system and item; `details` are the items that can be opened.
    `figures` are PNG bytes by name, `alternatives` say in words what they show. The plot opens with
    `default_system`, or the first one.

    Raises ValueError where `default_system` is none of the systems.
    """
    from plotly.offline import get_plotlyjs

    payload, counts = _payload(items, details, default_system=default_system)
    told = alternatives or {}
    return template("comparison.html.j2").render(
        title=title,
        sentences=sentences,
        notes=notes,
        facts=facts,
        tables=tables,
        folded_rows=FOLDED_ROWS,
        counts=counts,
        near_zero=NEAR_ZERO,
        figures=[(told.get(n) or n.replace("_", " "), inline(png)) for n, png in figures.items()],
        style=_source("comparison.css"),
        plotly=_safe(get_plotlyjs()),
        data=_safe(_script_json(payload)),
        script=_safe("\n".join(map(_source, _SCRIPTS))),
    )


def _payload(
    items: pd.DataFrame, details: Sequence[ItemDetail], *, default_system: str
) -> tuple[dict[str, Any], dict[str, int]]:
    """What the script draws from, by column; and how many items there are, drawn, and to open."""
    systems = _systems(items, details)
    if default_system and default_system not in systems:
        raise ValueError(f"{default_system!r} is none of the systems compared: {systems}")
    known = list(zip(items["corpus"].astype(str), items["item_id"].astype(str), strict=True))
    keys = [(detail.corpus, detail.item_id) for detail in details]
    rest = sorted(set(known).difference(keys), key=lambda key: sha256_text(key[1]))
    drawn = [*keys, *rest[: max(0, DRAWN_ITEMS - len(keys))]]
    corpora = list(dict.fromkeys(corpus for corpus, _ in drawn))
    texts = _Pool()
    payload = {
        "systems": systems,
        "chosen": systems.index(default_system) if default_system else 0,
        "corpora": corpora,
        "near_zero": NEAR_ZERO,
        "corpus": [corpora.index(corpus) for corpus, _ in drawn],
        **_points(items, known, systems=systems, drawn=drawn),
        "details": [_detail(detail, systems=systems, texts=texts) for detail in details],
        "texts": list(texts.places),
    }
    counts = {"total": len(keys) + len(rest), "drawn": len(drawn), "details": len(keys)}
    return payload, counts


def _systems(items: pd.DataFrame, details: Sequence[ItemDetail]) -> list[str]:
    """In the order of the items' table, then those that only the details know."""
    told = (row.system for detail in details for row in detail.rows)
    return list(dict.fromkeys([*map(str, items["system"].unique()), *told]))


def _points(
    items: pd.DataFrame, known: Sequence[_Key], *, systems: Sequence[str], drawn: Sequence[_Key]
) -> dict[str, list[list[Any]]]:
    """Per system a column over the drawn items: P without context, NCU (or its ends), EM."""
    place = {key: i for i, key in enumerate(drawn)}
    number = {system: i for i, system in enumerate(systems)}
    columns: dict[str, list[list[Any]]] = {
        name: [[None] * len(drawn) for _ in systems] for name in ("prior", "ncu", "em")
    }
    names = ["system", "s_prior", "ncu", "ncu_lower", "ncu_upper", "em"]
    for key, row in zip(known, items[names].itertuples(index=False, name=None), strict=True):
        if (i := place.get(key)) is None:
            continue
        system, s_prior, ncu, lower, upper, em = row
        of = number[str(system)]
        columns["prior"][of][i] = _short(math.exp(-s_prior))
        columns["ncu"][of][i] = _between(ncu, lower, upper)
        columns["em"][of][i] = _short(em)
    return columns


class _Pool:
    """Texts that repeat are told once; others name their place."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def __call__(self, text: str | None) -> int | None:
        return None if text is None else self.places.setdefault(text, len(self.places))


def _detail(detail: ItemDetail, *, systems: Sequence[str], texts: _Pool) -> dict[str, Any]:
    return {
        "id": detail.item_id,
        "question": detail.question,
        "answer": detail.answer,
        "aliases": list(detail.aliases),
        "fabricated": detail.fabricated,
        "original": list(_pieces(detail.original, texts)),
        "perturbed": None if detail.perturbed is None else list(_pieces(detail.perturbed, texts)),
        "rows": [_row(row, systems=systems, texts=texts) for row in detail.rows],
    }


def _row(row: ItemRow, *, systems: Sequence[str], texts: _Pool) -> list[Any]:
    lower, upper = row.surprisal_lower, row.surprisal_upper
    known_ids = len(row.token_ids) == len(row.token_logprobs)
    return [
        systems.index(row.system),
        *map(texts, (row.condition, row.continuation, row.status, row.reason, row.text)),
        texts(row.greedy_text),
        _between(math.exp(-row.surprisal_nats), math.exp(-upper), math.exp(-lower)),
        _between(row.surprisal_nats, lower, upper),
        _between(row.ncu, row.ncu_lower, row.ncu_upper),
        _short(row.em),
        [int(i) for i in row.token_ids] if known_ids else [],
        list(_tokens(row)),
    ]


def _pieces(pieces: Sequence[Piece], texts: _Pool) -> Iterator[Any]:
    """A place in the pool; within a list where the piece is marked."""
    for piece in shorten(pieces):
        yield [texts(piece.text)] if piece.marked else texts(piece.text)


def _tokens(row: ItemRow) -> Iterator[Any]:
    """Each token's log-probability; within a list where it is only the most that it can be."""
    uppers = row.token_logprobs_upper or row.token_logprobs
    for logprob, upper in zip(row.token_logprobs, uppers, strict=True):
        yield [_short(upper)] if math.isnan(logprob) else _short(logprob)


def _between(value: float, lower: float, upper: float) -> Any:
    """A number, the two that it lies between (None: unbounded there), or None."""
    if math.isnan(value) and not math.isnan(lower):
        return [_short(lower), _short(upper)]
    return _short(value)


def _short(value: float) -> float | int | None:
    """Four significant digits; None where missing or without end."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() else rounded


def _told(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _all(values: Iterable[Any] | None) -> tuple[Any, ...]:
    return () if values is None else tuple(values)


def _script_json(payload: Mapping[str, Any]) -> str:
    """JSON that a script block can hold, whatever the texts in it."""
    told = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", told)


def _source(name: str) -> Markup:
    return _safe(files("ncu_exp").joinpath("templates", name).read_text(encoding="utf-8"))


def _safe(text: str) -> Markup:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  scripts of ours, or JSON without a "<"
