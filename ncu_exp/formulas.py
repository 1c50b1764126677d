"""The formulas of one item: surprisal, CUS, NCU, success, and SQuAD's string matching. Pure.

All surprisals are mean surprisals in nats per answer token. Formulas: "Quantifying Prior Dominance
in RAG Systems", arXiv 2606.23695; string matching: the official SQuAD v1.1 evaluation.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeVar

    import numpy as np
    from numpy.typing import NDArray

    Floats = TypeVar("Floats", float, NDArray[np.float64])

NEAR_ZERO = 0.1  # an item below this NCU did not read: right all the same, it was recited

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def surprisal(mean_logprob: Floats) -> Floats:
    """Mean surprisal S (nats per token) of a mean log-probability."""
    return 0.0 - mean_logprob  # not -x, which makes -0.0 of a certain answer


def cus(s_prior: Floats, s_post: Floats) -> Floats:
    """Context utilisation score (nats per token): the surprisal that the context removed."""
    import numpy as np

    with np.errstate(invalid="ignore"):  # two unbounded ends have no difference
        return s_prior - s_post


def ncu_raw(s_prior: Floats, s_post: Floats, *, epsilon: float) -> Floats:
    """CUS as a fraction of the prior surprisal: 1 is all of it, below 0 the context hurt.

    Unbounded below: it explodes where the model knew the answer already (s_prior near 0). Where
    s_prior is without bound it is its limit, 1, and -infinity where s_post is.
    """
    import numpy as np

    raw: Any
    with np.errstate(invalid="ignore"):
        raw = cus(s_prior, s_post) / (s_prior + epsilon)
    limit = np.where(np.isinf(s_post), -np.inf, np.where(np.isinf(s_prior), 1.0, raw))
    found: Any = np.where(np.isnan(s_prior) | np.isnan(s_post), np.nan, limit)[()]
    return found  # type: ignore[no-any-return]  # a number of a number, an array of arrays


def ncu(s_prior: Floats, s_post: Floats, *, epsilon: float) -> Floats:
    """Raw NCU bounded to [0, 1]; NaN stays NaN."""
    import numpy as np

    bounded: Floats = np.clip(ncu_raw(s_prior, s_post, epsilon=epsilon), 0.0, 1.0)
    return bounded


def success(mean_logprob: Floats, *, tau: float) -> Any:
    """Whether the answer's probability per token (geometric mean) is above tau; bool per value."""
    import numpy as np

    return np.exp(mean_logprob) > tau


def normalize_answer(text: str) -> str:
    """SQuAD's normal form: lower case, no ASCII punctuation, no articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(prediction: str, answers: Iterable[str]) -> float:
    """1 where the prediction equals one of the answers in SQuAD's normal form, else 0."""
    normal = normalize_answer(prediction)
    return float(any(normal == normalize_answer(answer) for answer in answers))


def token_f1(prediction: str, answers: Iterable[str]) -> float:
    """Best F1 (0 to 1) of shared words between the prediction and any of the answers."""
    predicted = normalize_answer(prediction).split()
    return max(
        (_f1(predicted, normalize_answer(answer).split()) for answer in answers), default=0.0
    )


def _f1(predicted: list[str], gold: list[str]) -> float:
    shared = (Counter(predicted) & Counter(gold)).total()
    return 2.0 * shared / (len(predicted) + len(gold)) if shared else 0.0
