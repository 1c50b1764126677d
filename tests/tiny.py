"""Tiny random models and a byte-level tokenizer, made in a second: for speed, not for sense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]


def byte_tokenizer(*, merges: tuple[tuple[str, str], ...] = (), chat: bool = True) -> Any:
    """A tokenizer of 256 bytes, the given merges and a few special tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocab = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    for left, right in merges:
        vocab[left + right] = len(vocab)
    raw = Tokenizer(models.BPE(vocab=vocab, merges=list(merges)))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|end|>", additional_special_tokens=SPECIAL[1:]
    )
    if chat:
        tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def tiny_config(architecture: str, *, vocab_size: int, window: int = 4096) -> Any:
    """A two-layer config of one of the architectures below."""
    import transformers

    common = {
        "vocab_size": vocab_size,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": window,
        "bos_token_id": None,
        "eos_token_id": 256,
        "pad_token_id": None,
    }
    if architecture == "llama":
        return transformers.LlamaConfig(**common)
    if architecture == "qwen2":
        return transformers.Qwen2Config(**common)
    if architecture == "qwen3":
        return transformers.Qwen3Config(**common, head_dim=8)
    if architecture == "smollm3":  # its second layer knows no positions
        return transformers.SmolLM3Config(**common, no_rope_layers=[1, 0])
    if architecture == "gemma":
        return transformers.GemmaConfig(**common, head_dim=8)
    if architecture == "mistral":  # every layer sees eight tokens back
        return transformers.MistralConfig(**common, sliding_window=8)
    if architecture == "bloom":  # ALiBi
        return transformers.BloomConfig(
            vocab_size=vocab_size, hidden_size=32, n_layer=2, n_head=4, eos_token_id=256
        )
    if architecture == "mamba":  # recurrent
        return transformers.MambaConfig(
            vocab_size=vocab_size, hidden_size=32, num_hidden_layers=2, eos_token_id=256
        )
    assert architecture == "gpt2"
    return transformers.GPT2Config(
        vocab_size=vocab_size,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=window,
        bos_token_id=None,
        eos_token_id=256,
    )


def tiny_model(architecture: str = "llama", *, window: int = 4096, seed: int = 0) -> Any:
    """A random model whose next-token distributions are far from uniform."""
    import torch
    from transformers import AutoModelForCausalLM

    tokenizer = byte_tokenizer()
    torch.manual_seed(seed)
    config = tiny_config(architecture, vocab_size=len(tokenizer), window=window)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3.0)
    return model.eval()


def save_tiny_model(folder: Path, *, architecture: str = "llama", window: int = 4096) -> Path:
    """A tiny model and its tokenizer as a directory in Hugging Face format."""
    tiny_model(architecture, window=window).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder
