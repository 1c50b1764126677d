"""The boundary between prompt and answer is proven, and nothing is truncated."""

from __future__ import annotations

import pytest

from ncu_exp.errors import ModelError
from ncu_exp.records import Condition, Continuation, Message, Prompt, ScoreRequest
from ncu_exp.scoring.encoding import encode_request, hash_ids
from tests.tiny import byte_tokenizer


def ask(prompt: Prompt, answer: str = "Paris") -> ScoreRequest:
    return ScoreRequest("i", Condition.zero, prompt, ((Continuation.true, answer),), 5)


def test_plain_prompt_puts_the_space_into_the_continuation() -> None:
    tokenizer = byte_tokenizer()
    encoded = encode_request(tokenizer, ask(Prompt(text="Answer:", answer_prefix=" ")))
    assert tokenizer.decode(encoded.prompt_ids) == "Answer:"
    assert tokenizer.decode(encoded.continuations[0].ids) == " Paris"
    assert not encoded.continuations[0].boundary_merged


def test_chat_prompt_holds_the_template_once_and_no_second_start() -> None:
    tokenizer = byte_tokenizer()
    prompt = Prompt(messages=(Message("system", "S"), Message("user", "Q")))
    encoded = encode_request(tokenizer, ask(prompt))
    expected = "<|system|>S<|end|><|user|>Q<|end|><|assistant|>"
    assert tokenizer.decode(encoded.prompt_ids) == expected
    assert tokenizer.decode(encoded.continuations[0].ids) == "Paris"


def test_a_token_over_the_join_is_encoded_apart_and_recorded() -> None:
    # With the merge (e, r) the text "e" + "r" is one token: the prompt is no prefix of the whole.
    tokenizer = byte_tokenizer(merges=(("e", "r"),))
    encoded = encode_request(tokenizer, ask(Prompt(text="the"), "r"))
    assert encoded.continuations[0].boundary_merged
    assert encoded.continuations[0].ids == tuple(tokenizer("r").input_ids)
    assert encoded.prompt_ids == tuple(tokenizer("the").input_ids)
    # The same merge inside the answer is no matter of the join.
    assert (
        not encode_request(tokenizer, ask(Prompt(text="the"), "er"))
        .continuations[0]
        .boundary_merged
    )


def test_long_prompts_are_not_truncated() -> None:
    tokenizer = byte_tokenizer()
    tokenizer.model_max_length = 16
    encoded = encode_request(tokenizer, ask(Prompt(text="x" * 5000)))
    assert len(encoded.prompt_ids) == 5000
    assert encoded.length == 5005


def test_end_token_that_a_tokenizer_appends_is_not_part_of_the_prompt() -> None:
    from tokenizers.processors import TemplateProcessing

    tokenizer = byte_tokenizer()
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="$A <|end|>", special_tokens=[("<|end|>", tokenizer.eos_token_id)]
    )
    encoded = encode_request(tokenizer, ask(Prompt(text="Answer:", answer_prefix=" ")))
    assert tokenizer.decode(encoded.prompt_ids) == "Answer:"
    assert tokenizer.decode(encoded.continuations[0].ids) == " Paris"


def test_messages_without_a_template_are_refused() -> None:
    with pytest.raises(ModelError, match="prompt=plain"):
        encode_request(byte_tokenizer(chat=False), ask(Prompt(messages=(Message("user", "Q"),))))


@pytest.mark.parametrize("prompt", [Prompt(text=""), Prompt(text="Q")])
def test_a_prompt_or_an_answer_of_no_tokens_is_refused(prompt: Prompt) -> None:
    with pytest.raises(ModelError, match="no tokens"):
        encode_request(byte_tokenizer(), ask(prompt, ""))


def test_hash_tells_token_ids_apart() -> None:
    assert hash_ids((1, 23)) != hash_ids((12, 3))
    assert len(hash_ids(())) == 64
