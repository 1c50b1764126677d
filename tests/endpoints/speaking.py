"""A tiny model that answers as OpenAI-compatible servers do, in the formats that they use.

What the formats are was read off real servers (llama-cpp-python, vLLM) and OpenAI's documentation.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any

import torch

from ncu_exp.scoring.tokenizers import token_bytes
from tests.tiny import byte_tokenizer, tiny_model

EOS = 256
LETTERS = b"abcdefghijklmnopqrstuvwxyz "


def speaking_model(*, seed: int = 0) -> Any:
    """A tiny model that mostly writes lower-case letters, now and then something else."""
    model = tiny_model(seed=seed)
    vocabulary = byte_tokenizer().get_vocab()
    bias = torch.full((model.config.vocab_size,), -6.0)
    for byte in LETTERS:
        bias[vocabulary[chr(byte) if byte != 32 else "Ġ"]] = 0.0
    bias[EOS] = -3.0
    with torch.no_grad():
        model.lm_head.weight.mul_(0.5)
    model.lm_head.bias = torch.nn.Parameter(bias)
    return model.eval()


class Speaker:
    """Answers request bodies with response bodies."""

    def __init__(self, model: Any, *, name: str = "tiny", dialect: str = "echo") -> None:
        self.model, self.name, self.dialect = model, name, dialect
        self.tokenizer = byte_tokenizer()
        self._rows: dict[tuple[int, ...], list[torch.Tensor]] = {}  # of the greedy path
        self._lock = Lock()
        every = range(len(self.tokenizer))
        raw = token_bytes(self.tokenizer, every)
        assert raw is not None
        self._shown = [(self._text([i]), list(raw[i])) for i in every]
        self._rng = random.Random(0)

    def prepare(self, prompts: Iterable[Sequence[int]], *, tokens: int) -> None:
        """Generate for many prompts at once, those of one length together."""
        by_length: dict[int, list[tuple[int, ...]]] = defaultdict(list)
        for prompt in prompts:
            by_length[len(prompt)].append(tuple(prompt))
        for group in by_length.values():
            for first in range(0, len(group), 256):
                some = group[first : first + 256]
                ids = torch.tensor(some)
                for prompt in some:
                    self._rows[prompt] = []
                for _ in range(tokens):
                    with torch.inference_mode():
                        rows = torch.log_softmax(self.model(ids).logits[:, -1].float(), -1)
                    for prompt, row in zip(some, rows, strict=True):
                        self._rows[prompt].append(row)
                    ids = torch.cat([ids, rows.argmax(-1, keepdim=True)], dim=1)

    def answer(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            if path.endswith("/models"):
                return {"object": "list", "data": [{"id": self.name, "object": "model"}]}
            return self.chat(body) if "chat" in path else self.complete(body)

    def chat(self, body: Mapping[str, Any]) -> dict[str, Any]:
        messages, begun = list(body["messages"]), ""
        if messages[-1]["role"] == "assistant":
            begun = messages.pop()["content"]
        text = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        ids = self.tokenizer(text + begun, add_special_tokens=False)["input_ids"]
        if body.get("temperature"):
            path, rows = self._sampled(ids, int(body["max_tokens"]))
        else:
            path, rows = self._greedy(ids, int(body["max_tokens"]))
        choice: dict[str, Any] = {
            "index": 0,
            "message": {"role": "assistant", "content": self._text(path), "refusal": None},
            "finish_reason": "length" if len(path) == body["max_tokens"] else "stop",
        }
        if body.get("logprobs"):
            k = int(body["top_logprobs"])
            choice["logprobs"] = {
                "content": [
                    self._told(token, float(row[token])) | {"top_logprobs": self._top(row, k)}
                    for token, row in zip(path, rows, strict=True)
                ]
            }
        return {"choices": [choice], "usage": _usage(len(ids), len(path))}

    def complete(self, body: Mapping[str, Any]) -> dict[str, Any]:
        prompt = body["prompt"]
        ids = prompt if isinstance(prompt, list) else self.tokenizer(prompt)["input_ids"]
        path, _ = self._greedy(ids, int(body["max_tokens"]))
        echoed = self._text(ids) if body.get("echo") else ""
        choice: dict[str, Any] = {"index": 0, "text": echoed + self._text(path)}
        if body.get("echo"):
            whole = [*ids, *path]
            with torch.inference_mode():
                logits = self.model(torch.tensor([whole])).logits[0].float()
            rows = torch.log_softmax(logits, -1)[:-1]
            choice["logprobs"] = self._echoed(whole, rows)
            if self.dialect == "vllm":
                choice["prompt_logprobs"] = self._by_ids(ids, rows)
        return {"choices": [choice], "usage": _usage(len(ids), len(path))}

    def _greedy(self, ids: Sequence[int], n: int) -> tuple[list[int], list[torch.Tensor]]:
        if len(self._rows.get(tuple(ids), [])) < n:
            self.prepare([ids], tokens=n)
        path: list[int] = []
        rows = self._rows[tuple(ids)][:n]
        for row in rows:
            token = int(row.argmax())
            if token == EOS:
                break
            path.append(token)
        return path, rows[: len(path)]

    def _sampled(self, ids: Sequence[int], n: int) -> tuple[list[int], list[torch.Tensor]]:
        path: list[int] = []
        rows: list[torch.Tensor] = []
        while len(path) < n:
            with torch.inference_mode():
                logits = self.model(torch.tensor([[*ids, *path]])).logits[0, -1].float()
            row = torch.log_softmax(logits, -1)
            token = self._rng.choices(range(len(row)), row.exp().tolist())[0]
            if token == EOS:
                break
            path.append(token)
            rows.append(row)
        return path, rows

    def _told(self, token: int, logprob: float) -> dict[str, Any]:
        text, raw = self._shown[token]
        return {"token": text, "bytes": raw, "logprob": round(logprob, 6)}

    def _top(self, row: torch.Tensor, k: int) -> list[dict[str, Any]]:
        found = row.topk(min(k, len(row)))
        pairs = zip(found.indices.tolist(), found.values.tolist(), strict=True)
        return [self._told(token, logprob) for token, logprob in pairs]

    def _echoed(self, ids: Sequence[int], rows: torch.Tensor) -> dict[str, Any]:
        texts = [self._text([token]) for token in ids]
        offsets = [len("".join(texts[:place])) for place in range(len(texts))]
        logprobs: list[float | None] = [None]
        tops: list[dict[str, float] | None] = [None]
        for token, row in zip(ids[1:], rows, strict=True):
            logprobs.append(float(row[token]))
            best = int(row.argmax())
            tops.append({self._text([best]): float(row[best])})
        return {
            "tokens": texts,
            "token_logprobs": logprobs,
            "top_logprobs": tops,
            "text_offset": offsets,
        }

    def _by_ids(self, ids: Sequence[int], rows: torch.Tensor) -> list[Any]:
        told: list[Any] = [None]
        for token, row in zip(ids[1:], rows, strict=False):
            best = int(row.argmax())
            told.append(
                {
                    str(i): {
                        "logprob": float(row[i]),
                        "rank": int((row > row[i]).sum()) + 1,
                        "decoded_token": self._text([i]),
                    }
                    for i in {token, best}
                }
            )
        return told

    def _text(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids)))


def _usage(read: int, written: int) -> dict[str, int]:
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    }
