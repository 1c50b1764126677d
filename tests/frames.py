"""Tidy frames of a comparison, invented: for tests of figures, pages and tables made from them.

`frames(4, corpora=("sample", "squad"))` has four systems over two corpora. What the summary, the
differences and the sensitivity say is computed from the items, by simple normal approximations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

TAU, MARGIN, Z = 0.05, 0.05, 1.96
MODELS = {
    "smollm2-135m": 0.135,
    "smollm2-360m": 0.36,
    "smollm2-1.7b": 1.7,
    "qwen3-0.6b": 0.6,
    "qwen3-4b": 4.0,
    "llama-3.2-1b": 1.24,
    "llama-3.1-8b": 8.0,
}
# The first of a model's ways of being asked come first, so that few systems have a ladder too.
WAYS = [
    *[("bf16", "plain"), ("nf4", "plain"), ("int8", "plain"), ("bf16", "chat"), ("fp32", "plain")],
    *[("fp16", "plain"), ("nf4", "chat"), ("int8", "chat"), ("fp32", "chat"), ("fp16", "chat")],
]
COMPARED = ("oracle/accuracy", "oracle/ncu", "adversarial/prior_dominance")
RATES = {"negative_transfer_rate", "prior_dominance", "prior_dominance_contrastive", "adherence"}
UNKNOWN = {"lower": math.nan, "upper": math.nan}
COLUMNS = {
    "systems": "system model precision prompt estimator params_b",
    "summary": "system corpus measure value lo hi lower upper n n_total",
    "differences": "corpus measure a b difference lo hi lower upper n test p p_holm p_equivalence"
    " margin noise_floor detectable verdict",
    "items": "system corpus item_id s_prior s_post ncu ncu_lower ncu_upper ncu_raw em em_zero"
    " s_adversarial log_odds",
    "sensitivity": "setting family measure system value lower upper rank is_default",
}


@dataclass(frozen=True)
class Frames:
    systems: pd.DataFrame
    summary: pd.DataFrame
    differences: pd.DataFrame
    items: pd.DataFrame
    sensitivity: pd.DataFrame


@dataclass(frozen=True)
class _Values:
    """A system's values of items: per measure the two ends (n, 2), NaN where there is none."""

    ends: dict[str, Any]
    items: pd.DataFrame


def frames(
    n_systems: int,
    *,
    n_items: int = 96,
    corpora: Sequence[str] = ("sample",),
    estimators: Mapping[int, str] = MappingProxyType({}),
    long_labels: bool = False,
    seed: int = 0,
) -> Frames:
    """Frames of `n_systems` over `n_items` items of each corpus.

    The systems at the places (from 0) of `estimators` are served, and their numbers are those of
    that estimator: bounds where it is "interval". `long_labels` have 60 characters and more.
    """
    systems = _systems(n_systems, estimators=estimators, long_labels=long_labels)
    rng = np.random.default_rng(seed)
    difficulty = rng.gamma(1.3, 2.2, size=n_items * len(corpora)) + 0.02  # of items, for all
    names = [f"i{k:04}" for k in range(n_items)] * len(corpora)
    of = pd.DataFrame({"corpus": np.repeat(list(corpora), n_items), "item_id": names})
    values = {
        str(row.system): _values(row, of, difficulty=difficulty, rng=rng)
        for row in systems.itertuples()
    }
    where = {corpus: (of["corpus"] == corpus).to_numpy() for corpus in corpora}
    where["pooled"] = np.ones(len(of), dtype=bool)
    items = [v.items for v in values.values()]
    return Frames(
        systems=systems,
        summary=_frame(_summary(systems, values, where), "summary"),
        differences=_frame(_differences(systems, values, where), "differences"),
        items=pd.concat(items, ignore_index=True) if items else _frame([], "items"),
        sensitivity=_frame(_sensitivity(values), "sensitivity"),
    )


def _frame(rows: Iterable[Any], name: str) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=COLUMNS[name].split())


def _systems(n: int, *, estimators: Mapping[int, str], long_labels: bool) -> pd.DataFrame:
    ways = [(m, way) for k in (0, 2, 4, 6, 8) for m, way in product(MODELS, WAYS[k : k + 2])]
    rows = []
    for place in range(n):
        (model, (precision, prompt)), round_ = ways[place % 70], place // 70
        params_b, prompt = MODELS[model], prompt + (f"-{round_ + 1}" if round_ else "")
        if place in estimators:
            model, precision, params_b = f"served-{model}", "served", math.nan
        made_by = "an-organisation-with-a-long-name/" if long_labels else ""
        label = f"{made_by}{model} · {precision} · {prompt}"
        if place in estimators:
            label += f" · {estimators[place]} {place}"
        if long_labels:
            label += " · as asked at first"
        estimator = estimators.get(place, "exact")
        rows.append((label, model, precision, prompt, estimator, params_b))
    return _frame(rows, "systems")


def _values(row: Any, of: pd.DataFrame, *, difficulty: Any, rng: Any) -> _Values:
    """Larger models know more and read better; coarse precisions do both a little worse."""
    n = len(of)
    size = row.params_b if row.params_b > 0 else 1.0
    skill = 1.3 * size**-0.25 * (1.12 if row.precision == "nf4" else 1.0)
    s = {"zero": difficulty * skill * rng.gamma(12, 1 / 12, size=n)}
    for condition, left in (("oracle", 0.25), ("noise", 0.35), ("adversarial", 1.1)):
        s[condition] = s["zero"] * left * skill * rng.gamma(0.8, 1.2, size=n)
    stuck = rng.random(n) < 0.08  # known by heart: the context changes nothing
    s["zero"] = np.where(stuck, rng.uniform(0.02, 0.6, size=n), s["zero"])
    s["oracle"] = np.where(stuck, s["zero"] * rng.uniform(0.9, 1.02, size=n), s["oracle"])
    s_false = rng.gamma(0.6, 3.0, size=n)
    open_ = (rng.random(n) < 0.4) & (row.estimator == "interval")
    absent = np.arange(n) % 8 == 7  # no adversarial context
    ends = _ends(s, s_false=s_false, open_=open_, absent=absent)
    known = np.where(open_, math.nan, 1.0)
    em = (rng.random(n) < np.exp(-s["oracle"])).astype(float)
    ends["oracle/em"] = np.stack([em, em], axis=1)
    ncu, raw = ends["oracle/ncu"], ends["oracle/ncu_raw_mean"]
    items = of.assign(
        system=row.system,
        s_prior=s["zero"] * known,
        s_post=s["oracle"] * known,
        ncu=ncu[:, 0] * known,
        ncu_lower=ncu[:, 0],
        ncu_upper=ncu[:, 1],
        ncu_raw=raw[:, 0] * known,
        em=em,
        em_zero=(rng.random(n) < np.exp(-s["zero"])).astype(float),
        s_adversarial=np.where(absent, math.nan, s["adversarial"] * known),
        log_odds=ends["adversarial/log_odds"][:, 0] * known,
    )
    return _Values(ends, items.loc[:, COLUMNS["items"].split()])


def _ends(s: dict[str, Any], *, s_false: Any, open_: Any, absent: Any) -> dict[str, Any]:
    more = {c: np.where(open_, of + 1.5, of) for c, of in s.items()}  # what S may be at most
    ends = {}
    for condition in ("zero", "oracle", "noise"):
        ends[f"{condition}/surprisal"] = [s[condition], more[condition]]
        ends[f"{condition}/accuracy"] = _success(s[condition], more[condition])
    raw = [1 - more["oracle"] / s["zero"], 1 - s["oracle"] / more["zero"]]
    ends["oracle/ncu_raw_mean"] = raw
    ends["oracle/ncu"] = [np.clip(end, 0, 1) for end in raw]
    ends["oracle/negative_transfer_rate"] = [1.0 * (raw[1] < 0), 1.0 * (raw[0] < 0)]
    odds = [s["adversarial"] - s_false, more["adversarial"] - s_false]
    conflict = {
        "prior_dominance": _success(s["adversarial"], more["adversarial"]),
        "prior_dominance_contrastive": [1.0 * (odds[1] < 0), 1.0 * (odds[0] < 0)],
        "adherence": _success(s_false, s_false),
        "log_odds": odds,
    }
    for name, pair in conflict.items():
        ends[f"adversarial/{name}"] = [np.where(absent, math.nan, end) for end in pair]
    return {name: np.stack(pair, axis=1) for name, pair in ends.items()}


def _success(low: Any, high: Any) -> list[Any]:
    return [1.0 * (np.exp(-high) > TAU), 1.0 * (np.exp(-low) > TAU)]


def _summary(systems: Any, values: Any, where: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for (system, of), (corpus, inside) in product(values.items(), where.items()):
        keys = {"system": system, "corpus": corpus}
        for measure, ends in of.ends.items():
            yield keys | {"measure": measure} | _estimate(measure, ends[inside])
        medians = np.median(of.ends["oracle/ncu_raw_mean"][inside], axis=0)
        yield keys | {"measure": "oracle/ncu_raw_median"} | _no_interval(medians, inside.sum())
        s_prior, s_post = (of.ends[f"{c}/surprisal"][inside] for c in ("zero", "oracle"))
        pooled = 1 - s_post[:, ::-1].sum(0) / s_prior.sum(0)
        yield keys | {"measure": "oracle/ncu_pooled"} | _no_interval(pooled, inside.sum())
        size = systems.set_index("system")["params_b"].fillna(1.0)[system]
        for condition, base in (("zero", 0.05), ("oracle", 0.16)):
            seconds = np.repeat(base * (1 + size), 2)
            yield keys | {"measure": f"latency/{condition}_p50_s"} | _no_interval(seconds, 8)


def _no_interval(ends: Any, n: int) -> dict[str, Any]:
    known = bool(np.isclose(*ends))
    bounds = UNKNOWN if known else {"lower": ends[0], "upper": ends[1]}
    value = {"value": ends[0] if known else math.nan, "lo": math.nan, "hi": math.nan}
    return value | bounds | {"n": n, "n_total": n}


def _estimate(measure: str, ends: Any) -> dict[str, Any]:
    ends, n_total = ends[~np.isnan(ends[:, 0])], len(ends)
    n = len(ends)
    if n == 0:
        none = dict.fromkeys(("value", "lo", "hi"), math.nan)
        return none | UNKNOWN | {"n": 0, "n_total": n_total}
    low, high = ends.mean(axis=0)
    half = Z * ends.std(axis=0) / math.sqrt(n)
    lo, hi = low - half[0], high + half[1]
    kind = measure.partition("/")[2]
    if kind in RATES | {"accuracy", "ncu", "em"}:
        lo, hi = max(0.0, lo), min(1.0, hi)
    known = bool(np.array_equal(ends[:, 0], ends[:, 1]))
    bounds = UNKNOWN if known else {"lower": low, "upper": high}
    value = {"value": low if known else math.nan, "lo": lo, "hi": hi}
    return value | bounds | {"n": n, "n_total": n_total}


def _differences(systems: Any, values: Any, where: dict[str, Any]) -> Iterator[dict[str, Any]]:
    of = systems.set_index("system")
    model, prompt, estimator = (of[c].to_dict() for c in ("model", "prompt", "estimator"))
    for corpus, measure in product(where, COMPARED):
        for a, b in combinations(values, 2):
            pair = [values[x].ends[measure][where[corpus]] for x in (a, b)]
            keys = {"corpus": corpus, "measure": measure, "a": a, "b": b, "margin": MARGIN}
            same = (model[a], prompt[a]) == (model[b], prompt[b])
            alien = {"paper", "sampled"} & {estimator[a], estimator[b]}
            floor = 0.01 if same and not alien else math.nan
            test = "paired_t" if measure == "oracle/ncu" else "mcnemar"
            yield keys | {"noise_floor": floor, "test": test} | _difference(pair, bool(alien))


def _difference(pair: list[Any], alien: bool) -> dict[str, Any]:
    gap = np.stack([pair[0][:, 0] - pair[1][:, 1], pair[0][:, 1] - pair[1][:, 0]], axis=1)
    gap = gap[~np.isnan(gap[:, 0])]
    low, high = gap.mean(axis=0)
    error = float(gap.std(axis=0).max() / math.sqrt(len(gap)))
    lo, hi = low - Z * error, high + Z * error
    known = bool(np.array_equal(gap[:, 0], gap[:, 1]))
    p = math.erfc(abs(low) / error / math.sqrt(2)) if known and error else math.nan
    bounds = UNKNOWN if known else {"lower": low, "upper": high}
    verdict = "not_comparable" if alien else _verdict(lo, hi, p=3 * p, tied=known and error == 0)
    numbers = {"difference": low if known else math.nan, "lo": lo, "hi": hi, "n": len(gap)}
    numbers |= bounds | {"p": p, "p_holm": np.minimum(1.0, 3 * p), "p_equivalence": math.nan}
    if alien:
        numbers |= dict.fromkeys(
            ("difference", "lo", "hi", "lower", "upper", "p", "p_holm"), math.nan
        )
    return numbers | {"detectable": 2.8 * error, "verdict": verdict}


def _verdict(lo: float, hi: float, *, p: float, tied: bool) -> str:
    if tied:
        return "tie"
    if (lo > 0 or hi < 0) and not p >= 0.05:  # p is NaN where only bounds are known
        return "higher" if lo > 0 else "lower"
    return "equivalent" if lo > -MARGIN and hi < MARGIN else "undecided"


def _sensitivity(values: dict[str, _Values]) -> Iterator[dict[str, Any]]:
    """Two families of settings of prior dominance and NCU: made of items, ranked."""
    for tau in (0.01, 0.02, 0.05, 0.1, 0.2):
        value = {
            k: (np.exp(-v.items["s_adversarial"].dropna()) > tau).mean() for k, v in values.items()
        }
        names = (f"tau = {tau:g}", "tau", "adversarial/prior_dominance")
        yield from _ranked(names, value, values, is_default=tau == TAU)
    raw = {k: v.items["ncu_raw"].dropna() for k, v in values.items()}
    prior = {k: v.items.dropna(subset="s_prior") for k, v in values.items()}
    averages = {
        "mean of bounded": {k: of.clip(0, 1).mean() for k, of in raw.items()},
        "raw mean": {k: of.mean() for k, of in raw.items()},
        "raw median": {k: of.median() for k, of in raw.items()},
        "pooled": {k: 1 - of["s_post"].sum() / of["s_prior"].sum() for k, of in prior.items()},
    }
    for setting, value in averages.items():
        names = (setting, "average", "oracle/ncu")
        yield from _ranked(names, value, values, is_default=setting == "mean of bounded")


def _ranked(
    names: tuple[str, str, str], value: dict[str, Any], of: dict[str, _Values], *, is_default: bool
) -> Iterator[dict[str, Any]]:
    columns = dict(zip(("setting", "family", "measure"), names, strict=True))
    known = {k: bool(v.items["ncu"].notna().all()) for k, v in of.items()}
    ranks = pd.Series({k: x for k, x in value.items() if known[k]}, dtype=float)
    ranks = ranks.rank(ascending=False, method="average")
    for system, x in value.items():
        number = {"value": float(x)} | UNKNOWN
        if not known[system]:
            number = {"value": math.nan, "lower": float(x) - 0.1, "upper": float(x) + 0.1}
        rank = float(ranks.get(system, math.nan))
        yield columns | {"system": system, "rank": rank, "is_default": is_default} | number
