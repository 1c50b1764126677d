"""Score strings with lm-evaluation-harness: run by the Python of an environment that has it.

    python peer_lm_eval.py MODEL_FOLDER PAIRS.json SCORES.json

Knows nothing of ncu_exp. PAIRS.json is a list of [prompt, continuation]; SCORES.json gets the
versions in use and, per pair, the token ids of both, the sum of log-probabilities of the
continuation (nats), whether it is greedy, and the method that gave them.

`HFLM.loglikelihood` counts whitespace at the end of a prompt to the continuation, so behind a chat
template, whose generation prompt ends in a newline, it scores that newline as well. Such pairs go
to `HFLM._loglikelihood_tokens`, which `loglikelihood` itself ends in, with the ids of lm-eval's
own `tok_encode` cut where the prompt ends.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("lm_eval", "transformers", "torch")


def main(model_folder: str, pairs_file: str, scores_file: str) -> None:
    """Read the pairs, score them one at a time in float32 on the CPU, write the scores."""
    from lm_eval.models.huggingface import HFLM  # type: ignore[import-not-found]

    lm = HFLM(
        pretrained=model_folder,
        backend="causal",
        device="cpu",
        dtype="float32",
        batch_size=1,  # no padding
        add_bos_token=False,  # the strings hold every special token that they are to have
        logits_cache=False,  # one forward pass per pair, shared with no other
    )
    pairs = [(str(p), str(c)) for p, c in json.loads(Path(pairs_file).read_text("utf-8"))]
    found = {"versions": {p: version(p) for p in PACKAGES}, "scores": score(lm, pairs)}
    Path(scores_file).write_text(json.dumps(found), "utf-8")


def score(lm: Any, pairs: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """One record per pair, in their order."""
    split = [split_at_prompt(lm, *pair) for pair in pairs]
    same = [lm._encode_pair(*pair) == ids for pair, ids in zip(pairs, split, strict=True)]
    from_text = iter(loglikelihood(lm, [p for p, s in zip(pairs, same, strict=True) if s]))
    moved = [(p, *i) for p, i, s in zip(pairs, split, same, strict=True) if not s]
    from_ids = iter(lm._loglikelihood_tokens(moved, disable_tqdm=True))
    records = []
    for (prompt_ids, continuation_ids), is_same in zip(split, same, strict=True):
        sum_logprob, is_greedy = next(from_text if is_same else from_ids)
        records.append(
            {
                "prompt_ids": prompt_ids,
                "continuation_ids": continuation_ids,
                "sum_logprob": sum_logprob,
                "is_greedy": is_greedy,
                "method": "loglikelihood" if is_same else "_loglikelihood_tokens",
            }
        )
    return records


def split_at_prompt(lm: Any, prompt: str, continuation: str) -> tuple[list[int], list[int]]:
    """The ids of lm-eval's tokenizer, cut where the ids of the prompt alone end."""
    prompt_ids = lm.tok_encode(prompt)
    return prompt_ids, lm.tok_encode(prompt + continuation)[len(prompt_ids) :]


def loglikelihood(lm: Any, pairs: list[tuple[str, str]]) -> list[tuple[float, bool]]:
    """lm-eval's public scoring call on strings."""
    from lm_eval.api.instance import Instance  # type: ignore[import-not-found]

    requests = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(pairs)]
    found: list[tuple[float, bool]] = lm.loglikelihood(requests, disable_tqdm=True)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
