"""The tokenizer of a model that a server runs: by its name, or by what the server calls it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ncu_exp.config import ModelConfig, WeightsSource
from ncu_exp.errors import ModelError, NetworkError
from ncu_exp.scoring.packaged import GGUF
from ncu_exp.scoring.weights import find_place, quiet, readable_errors

log = logging.getLogger(__name__)

PACKAGED = "smollm2-135m-instruct"


def open_tokenizer(name: str, *, cache_dir: Path) -> Any:
    """The tokenizer of a hub id, a directory, a GGUF file, or the embedded model's name.

    Raises ModelError or NetworkError where it cannot be had.
    """
    from transformers import AutoTokenizer

    source = WeightsSource.packaged if name == PACKAGED else WeightsSource.hub
    config = ModelConfig(name=name, label=f"model.tokenizer={name}", source=source)
    file = Path(name).expanduser()
    with quiet(), readable_errors(config):
        if file.suffix == ".gguf":
            if not file.is_file():
                raise ModelError(f"model.tokenizer={name}: there is no such file.")
            return AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name)
        place, arguments = find_place(config, cache_dir)
        return AutoTokenizer.from_pretrained(place, **arguments)


def guess_tokenizer(names: Sequence[str], *, cache_dir: Path) -> Any | None:
    """The tokenizer of what a server says that it serves, where one of the names leads to it."""
    for name in names:
        # The embedded model's file is known, and its tokenizer quicker to read than out of it.
        known = PACKAGED if Path(name).name == GGUF else name
        if known != PACKAGED and not known.endswith(".gguf") and "/" not in known:
            continue
        try:
            return open_tokenizer(known, cache_dir=cache_dir)
        except (ModelError, NetworkError) as error:
            log.info("no tokenizer of the served model: %s", error)
    return None


def token_bytes(tokenizer: Any, ids: Sequence[int]) -> list[bytes] | None:
    """The bytes that each token stands for, where the tokenizer works on bytes; else None.

    Where it does not (SentencePiece), two tokens may be the same text, with and without the space
    before a word, and a token told as text cannot be known.
    """
    if not _works_on_bytes(tokenizer):
        return None
    tokens, table = tokenizer.convert_ids_to_tokens(list(ids)), _byte_of_letter()
    return [
        bytes(table[letter] for letter in token)
        if all(letter in table for letter in token)
        else token.encode()  # one that was added, such as the end of a turn
        for token in tokens
    ]


def _works_on_bytes(tokenizer: Any) -> bool:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return "ByteLevel" in repr(getattr(backend, "decoder", None))


@lru_cache(maxsize=1)
def _byte_of_letter() -> dict[str, int]:
    """The letters in which byte-level tokenizers write bytes (GPT-2's table)."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(0x100) if byte not in shown]
    letters = {chr(byte): byte for byte in shown}
    return letters | {chr(0x100 + place): byte for place, byte in enumerate(hidden)}
