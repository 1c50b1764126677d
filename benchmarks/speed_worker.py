"""One scorer of the speed benchmark, run by the Python of an environment that has it.

    python speed_worker.py SCORER MODEL_FOLDER WORKLOAD.json DTYPE THREADS

Knows nothing of ncu_exp, but for the scorer of that name. Loads the model, then reads one line
after another, "score" or "greedy", and answers with a line of JSON: the seconds that it took, the
sum of log-probabilities (nats) of every answer of every request, in the workload's order, and for
"greedy" the ids of the greedy tokens behind every prompt besides.

WORKLOAD.json: {"requests": [{"prompt": ids, "answers": [ids, ...], "text": the prompt as text}],
"greedy_tokens": int, "ours": a file for the scorer ncu_exp}. The others are handed token ids, so
that tokenizing is no part of their time, but for the greedy tokens of lm-eval, which takes texts.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

BATCH = 8
Scores = list[list[float]]
Tokens = list[list[int]]
Work = Callable[[], tuple[Scores, Tokens | None]]


def main(scorer: str, folder: str, workload: str, dtype: str, threads: str) -> None:
    """Load, say so, and work line by line until the input ends."""
    import torch

    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    torch.set_num_threads(int(threads))
    work = json.loads(Path(workload).read_text("utf-8"))
    kinds = SCORERS[scorer](folder, work, dtype)
    packages = ("torch", "transformers", *PACKAGES.get(scorer, ()))
    print(json.dumps({"versions": {p: version(p) for p in packages}}), file=answers, flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        scores, greedy = kinds[line.strip()]()
        seconds = time.perf_counter() - start
        found = {"seconds": seconds, "scores": scores, "greedy": greedy}
        print(json.dumps(found), file=answers, flush=True)


def naive(folder: str, work: dict[str, Any], dtype: str) -> dict[str, Work]:
    """The loop that everybody writes first: a forward pass per answer, `generate` per prompt."""
    import torch

    model = _load(folder, dtype)
    eos = model.generation_config.eos_token_id

    def score() -> tuple[Scores, None]:
        return [[one(r["prompt"], ids) for ids in r["answers"]] for r in work["requests"]], None

    @torch.inference_mode()
    def one(prompt: list[int], answer: list[int]) -> float:
        logits = model(input_ids=torch.tensor([prompt + answer])).logits
        rows = logits[0, len(prompt) - 1 : -1].float().log_softmax(-1)
        return float(rows.gather(1, torch.tensor(answer)[:, None]).sum())

    @torch.inference_mode()
    def greedy() -> tuple[Scores, Tokens]:
        made = []
        for request in work["requests"]:
            prompt = torch.tensor([request["prompt"]])
            out = model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=work["greedy_tokens"],
                do_sample=False,
                pad_token_id=eos if isinstance(eos, int) else eos[0],
            )
            made.append(out[0, prompt.shape[1] :].tolist())
        return score()[0], made

    return {"score": score, "greedy": greedy}


def lm_eval(batch: int) -> Callable[[str, dict[str, Any], str], dict[str, Work]]:
    """lm-evaluation-harness: the calls that `loglikelihood` and `generate_until` end in."""

    def scorer(folder: str, work: dict[str, Any], dtype: str) -> dict[str, Work]:
        from lm_eval.api.instance import Instance  # type: ignore[import-not-found]
        from lm_eval.models.huggingface import HFLM  # type: ignore[import-not-found]

        lm = HFLM(
            pretrained=folder,
            backend="causal",
            device="cpu",
            dtype=dtype,
            batch_size=batch,
            add_bos_token=False,  # the prompts hold every special token that they are to have
        )
        until = {"until": [], "max_gen_toks": work["greedy_tokens"], "do_sample": False}

        def score() -> tuple[Scores, None]:
            triples = [
                (("", ""), r["prompt"], ids) for r in work["requests"] for ids in r["answers"]
            ]
            sums = iter(lm._loglikelihood_tokens(triples, disable_tqdm=True))
            return [[float(next(sums)[0]) for _ in r["answers"]] for r in work["requests"]], None

        def greedy() -> tuple[Scores, Tokens]:
            asked = [
                Instance("generate_until", {}, (r["text"], dict(until)), index)
                for index, r in enumerate(work["requests"])
            ]
            texts = lm.generate_until(asked, disable_tqdm=True)
            # Texts are what it gives: as ids, to be compared.
            return score()[0], [lm.tok_encode(text) for text in texts]

        return {"score": score, "greedy": greedy}

    return scorer


def minicons(folder: str, work: dict[str, Any], dtype: str) -> dict[str, Work]:
    """minicons: `compute_stats`, which `conditional_score` ends in, with the right boundary.

    `conditional_score` counts the tokens of a prompt without those that equal the padding token,
    which stand in every chat prompt of this model, and so scores a piece of the prompt too.
    """
    import torch
    from minicons.scorer import IncrementalLMScorer  # type: ignore[import-not-found]

    lm = IncrementalLMScorer(folder, "cpu", dtype=getattr(torch, dtype))

    def score() -> tuple[Scores, None]:
        pairs = [(r["prompt"], ids) for r in work["requests"] for ids in r["answers"]]
        sums: list[float] = []
        for first in range(0, len(pairs), BATCH):
            batch = pairs[first : first + BATCH]
            encoded = lm.tokenizer.pad(
                {"input_ids": [p + ids for p, ids in batch]}, return_tensors="pt"
            )
            offsets = [len(p) - 1 for p, _ in batch]
            found = lm.compute_stats((encoded, offsets), return_tensors=True)
            sums += [float(logprobs.sum()) for logprobs in found]
        rest = iter(sums)
        return [[next(rest) for _ in r["answers"]] for r in work["requests"]], None

    return {"score": score}


def ncu_exp(folder: str, work: dict[str, Any], dtype: str) -> dict[str, Work]:
    """This project's engine as a job asks it, its store off; it tokenizes for itself."""
    from benchmarks.workload import OurEngine

    engine = OurEngine(Path(work["ours"]), dtype=dtype)
    return {
        "score": lambda: (engine.run(0)[0], None),
        "greedy": lambda: engine.run(work["greedy_tokens"]),
    }


def _load(folder: str, dtype: str) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()


SCORERS = {
    "naive": naive,
    "lm-eval": lm_eval(1),
    "lm-eval-8": lm_eval(BATCH),
    "minicons": minicons,
    "ncu_exp": ncu_exp,
}
PACKAGES = {
    "lm-eval": ("lm_eval",),
    "lm-eval-8": ("lm_eval",),
    "minicons": ("minicons",),
}


if __name__ == "__main__":
    main(*sys.argv[1:])
