"""A row for each item and system: what the figures and the page show of single items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ncu_exp.compare.alignment import Block
from ncu_exp.formulas import ncu, ncu_raw
from ncu_exp.measures import ok_rows, rows_of
from ncu_exp.records import Condition, Continuation

if TYPE_CHECKING:
    import pandas as pd

    from ncu_exp.config import MetricsConfig

COLUMNS = (
    *("system", "corpus", "item_id", "s_prior", "s_post", "ncu", "ncu_lower", "ncu_upper"),
    *("ncu_raw", "em", "em_zero", "s_adversarial", "log_odds"),
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
        log_odds=(false["mean_logprob"] - true["mean_logprob"]).reindex(shared),
    )
    return frame.rename_axis("item_id").reset_index().astype({"item_id": object})
