"""One scorer of the speed benchmark, run by the Python of an environment that has it.

    python speed_worker.py SCORER MODEL WORKLOAD.json PRECISION THREADS

Knows nothing of ncu_exp, but for the scorer of that name. Loads the model and says so in a line of
JSON ({"versions", "note"}); then reads a line of JSON after another, {"work": "score" or "greedy"},
and answers each with a line: {"seconds": of the work, "results": {"sums": the sum of
log-probabilities (nats) of every answer of every request, in the workload's order, and for "greedy"
"ids" or "texts": the greedy tokens behind every prompt}}.

WORKLOAD.json holds "requests", each with "prompt_ids" and "prompt", "answers_ids" and "answers"
(as texts), "special" (whether a tokenizer is to add its special tokens), "greedy_tokens", and
"ours" for the scorer ncu_exp. Who takes ids is handed ids; tokenizing is part of the time of who
takes texts.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

DTYPES = {"fp32": "float32", "bf16": "bfloat16"}
BATCH = 8
Sums = list[list[float]]
Results = dict[str, Any]
Works = dict[str, Callable[[], Results]]


def main(scorer: str, model: str, workload: str, precision: str, threads: str) -> None:
    """Load, say so, and work line by line until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    import torch

    torch.set_num_threads(int(threads))
    asked = json.loads(Path(workload).read_text("utf-8"))
    works, note = SCORERS[scorer](model, asked, precision)
    packages = ("torch", "transformers", *PACKAGES.get(scorer, ()))
    hello = {"versions": {p: version(p) for p in packages}, "note": note}
    print(json.dumps(hello), file=answers, flush=True)
    for line in sys.stdin:
        work = works[json.loads(line)["work"]]
        start = time.perf_counter()
        results = work()
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "results": results}), file=answers, flush=True)


def naive(model: str, asked: dict[str, Any], precision: str) -> tuple[Works, str]:
    """The loop that everybody writes first: a forward pass per answer, `generate` per prompt."""
    import torch
    from transformers import AutoModelForCausalLM

    lm: Any = AutoModelForCausalLM.from_pretrained(
        model, dtype=getattr(torch, DTYPES[precision]), attn_implementation="sdpa"
    ).eval()
    eos = lm.generation_config.eos_token_id
    pad = eos[0] if isinstance(eos, list) else eos

    @torch.inference_mode()
    def sum_logprob(prompt: list[int], answer: list[int]) -> float:
        logits = lm(input_ids=torch.tensor([prompt + answer])).logits
        rows = logits[0, len(prompt) - 1 : -1].float().log_softmax(-1)
        return float(rows.gather(1, torch.tensor(answer)[:, None]).sum())

    def score() -> Results:
        sums = [
            [sum_logprob(r["prompt_ids"], ids) for ids in r["answers_ids"]]
            for r in asked["requests"]
        ]
        return {"sums": sums}

    def generated(prompt_ids: list[int]) -> list[int]:
        prompt = torch.tensor([prompt_ids])
        out = lm.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=asked["greedy_tokens"],
            do_sample=False,
            pad_token_id=pad,
        )
        ids: list[int] = out[0, prompt.shape[1] :].tolist()
        return ids

    def greedy() -> Results:
        return score() | {"ids": [generated(r["prompt_ids"]) for r in asked["requests"]]}

    return {"score": score, "greedy": greedy}, "the others are compared with it"


def lm_eval(model: str, asked: dict[str, Any], precision: str, *, batch: int) -> tuple[Works, str]:
    """lm-evaluation-harness: what its `loglikelihood` ends in, on ids, and `generate_until`."""
    from lm_eval.api.instance import Instance  # type: ignore[import-not-found]
    from lm_eval.models.huggingface import HFLM  # type: ignore[import-not-found]

    lm = HFLM(
        pretrained=model,
        backend="causal",
        device="cpu",
        dtype=DTYPES[precision],
        batch_size=batch,
        add_bos_token=False,  # the prompts hold every special token that they are to have
    )
    until = {"until": [], "max_gen_toks": asked["greedy_tokens"], "do_sample": False}

    def score() -> Results:
        pairs = [
            (("", ""), r["prompt_ids"], ids) for r in asked["requests"] for ids in r["answers_ids"]
        ]
        found = lm._loglikelihood_tokens(pairs, disable_tqdm=True)
        return {"sums": _by_request([float(sum_) for sum_, _ in found], asked)}

    def greedy() -> Results:
        wanted = [
            Instance("generate_until", {}, (r["prompt"], dict(until)), index)
            for index, r in enumerate(asked["requests"])
        ]
        return score() | {"texts": lm.generate_until(wanted, disable_tqdm=True)}

    return {"score": score, "greedy": greedy}, ""


def minicons(model: str, asked: dict[str, Any], precision: str) -> tuple[Works, str]:
    """minicons: `conditional_score` on texts, with a padding token that no text holds.

    It counts the tokens of a prompt without those that equal the padding token. With the model's
    own, which ends every chat message, it would score a piece of the prompt as well.
    """
    import torch
    from minicons.scorer import IncrementalLMScorer  # type: ignore[import-not-found]
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    used = {
        i for r in asked["requests"] for ids in (r["prompt_ids"], *r["answers_ids"]) for i in ids
    }
    unused = [str(t) for i, t in sorted(tokenizer.added_tokens_decoder.items()) if i not in used]
    if unused:
        tokenizer.pad_token = unused[0]
    lm = IncrementalLMScorer(
        model, "cpu", tokenizer=tokenizer, dtype=getattr(torch, DTYPES[precision])
    )
    pairs = [(r["prompt"], answer) for r in asked["requests"] for answer in r["answers"]]

    def score() -> Results:
        sums: list[float] = []
        for first in range(0, len(pairs), BATCH):
            prompts, answers = zip(*pairs[first : first + BATCH], strict=True)
            sums += lm.conditional_score(
                list(prompts),
                list(answers),
                separator="",
                reduction=lambda logprobs: float(logprobs.sum()),
                chat=not asked["special"],  # adds no special tokens
            )
        return {"sums": _by_request(sums, asked)}

    return {"score": score}, ""


def ncu_exp(model: str, asked: dict[str, Any], precision: str) -> tuple[Works, str]:
    """This project's engine as a job asks it; it tokenizes for itself."""
    from benchmarks.workload import OurEngine

    engine = OurEngine(asked["ours"], precision=precision)

    def score() -> Results:
        return {"sums": engine.run(0)[0]}

    def greedy() -> Results:
        sums, ids = engine.run(asked["greedy_tokens"])
        return {"sums": sums, "ids": ids}

    return {"score": score, "greedy": greedy}, f"way: {engine.way}"


def _by_request(sums: list[float], asked: dict[str, Any]) -> Sums:
    rest = iter(sums)
    return [[next(rest) for _ in r["answers_ids"]] for r in asked["requests"]]


SCORERS: dict[str, Callable[[str, dict[str, Any], str], tuple[Works, str]]] = {
    "ncu_exp": ncu_exp,
    "naive": naive,
    "lm-eval": lambda *given: lm_eval(*given, batch=1),
    "lm-eval-8": lambda *given: lm_eval(*given, batch=BATCH),
    "minicons": minicons,
}
PACKAGES = {
    "ncu_exp": ("ncu_exp",),
    "lm-eval": ("lm_eval",),
    "lm-eval-8": ("lm_eval",),
    "minicons": ("minicons",),
}


if __name__ == "__main__":
    main(*sys.argv[1:])
