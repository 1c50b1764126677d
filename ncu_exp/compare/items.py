"""A row for each item and system: what the figures and the page show of single items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ncu_exp.compare.alignment import Block
from ncu_exp.formulas import ncu, ncu_raw
from ncu_exp.measures import ok_rows, rows_of
from ncu_exp.records import Condition, Continuation

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from ncu_exp.config import MetricsConfig

COLUMNS = (
    *("system", "corpus", "item_id", "s_prior", "s_post", "ncu", "ncu_lower", "ncu_upper"),
    *("ncu_raw", "em", "em_zero", "s_adversarial", "log_odds"),
    *("s_prior_best", "s_post_best", "s_prior_any", "s_post_any"),
)


def items_frame(blocks: Sequence[Block], settings: Mapping[str, MetricsConfig]) -> pd.DataFrame:
    """The items scored both without and with the gold context, under the first draw of contexts."""
    import pandas as pd

    first = {block.corpus: block for block in reversed(blocks)}
    frames = [
        _of_system(table, settings[system]).assign(system=system, corpus=corpus)
        for corpus, block in reversed(first.items())
        for system, table in block.tables.items()
    ]
    return pd.concat(frames, ignore_index=True)[list(COLUMNS)]


def _of_system(table: pd.DataFrame, settings: MetricsConfig) -> pd.DataFrame:
    zero, oracle, true, false = (
        ok_rows(rows_of(table, condition, continuation)).set_index("item_id")
        for condition, continuation in (
            (Condition.zero, Continuation.true),
            (Condition.oracle, Continuation.true),
            (Condition.adversarial, Continuation.true),
            (Condition.adversarial, Continuation.fabricated),
        )
    )
    shared = zero.index.intersection(oracle.index)
    zero, oracle = zero.loc[shared], oracle.loc[shared]
    s_prior, s_post = zero["surprisal_nats"], oracle["surprisal_nats"]
    of = (s_prior.to_numpy(dtype="float64"), s_post.to_numpy(dtype="float64"))
    frame = oracle[["ncu_lower", "ncu_upper", "em"]].assign(
        s_prior=s_prior,
        s_post=s_post,
        ncu=ncu(*of, epsilon=settings.epsilon),
        ncu_raw=ncu_raw(*of, epsilon=settings.epsilon),
        em_zero=zero["em"],
        s_adversarial=true["surprisal_nats"].reindex(shared),
        **_accepted(table, (zero, oracle)),
        log_odds=(false["mean_logprob"] - true["mean_logprob"]).reindex(shared),
    )
    return frame.rename_axis("item_id").reset_index().astype({"item_id": object})


def _accepted(table: pd.DataFrame, true: Sequence[pd.DataFrame]) -> dict[str, pd.Series]:
    """Surprisals without and with the context, of the likeliest accepted answer and of any of them.

    Of any: minus the log of the sum of their probabilities, over the tokens of the true answer. NaN
    where no alias was scored. `true` are the rows of the true answers, zero and oracle.
    """
    import numpy as np
    import pandas as pd

    missing = pd.Series(float("nan"), index=true[0].index)
    names = ("s_prior_best", "s_prior_any", "s_post_best", "s_post_any")
    if not (table["continuation"] == Continuation.alias.value).any():
        return dict.fromkeys(names, missing)
    found: list[pd.Series] = []
    for condition, rows in zip((Condition.zero, Condition.oracle), true, strict=True):
        aliases = ok_rows(rows_of(table, condition, Continuation.alias)).set_index("item_id")
        both = pd.concat([rows, aliases.loc[aliases.index.isin(rows.index)]])
        mean, n = (both[name].astype("float64") for name in ("mean_logprob", "n_tokens"))
        likeliest, of_any = _reduced(np.maximum, mean), _reduced(np.logaddexp, mean * n)
        found += [-likeliest, -of_any / rows["n_tokens"].astype("float64")]
    return dict(zip(names, found, strict=True))


def _reduced(function: np.ufunc, values: pd.Series) -> pd.Series:
    """The values of each item reduced to one."""
    import numpy as np
    import pandas as pd

    ordered = values.sort_index(kind="stable")
    items, starts = np.unique(ordered.index.to_numpy(dtype=str), return_index=True)
    return pd.Series(function.reduceat(ordered.to_numpy(), starts), index=items)
