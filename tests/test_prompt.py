"""Prompts of the three styles, from the configuration that ships."""

from __future__ import annotations

import pytest
import yaml

from ncu_exp.config import PromptConfig, PromptStyle, conf_dir
from ncu_exp.errors import UserError
from ncu_exp.prompt import build_prompt, check_prompt

CONTEXT = "Paris\nParis is the capital of {question} France."


def shipped(style: str) -> PromptConfig:
    values = yaml.safe_load((conf_dir() / "prompt" / f"{style}.yaml").read_text(encoding="utf-8"))
    return PromptConfig(**{**values, "name": PromptStyle(values["name"])})


@pytest.mark.parametrize("style", ["directive", "grounded"])
def test_chat_styles_ask_in_messages(style: str) -> None:
    prompt = build_prompt("Which city?", CONTEXT, shipped(style))
    assert [m.role for m in prompt.messages] == ["system", "user"]
    assert CONTEXT in prompt.messages[1].content
    assert prompt.messages[1].content.endswith("Question: Which city?")
    assert (prompt.text, prompt.answer_prefix) == ("", "")


def test_plain_style_ends_where_the_answer_begins() -> None:
    prompt = build_prompt("Which city?", CONTEXT, shipped("plain"))
    assert prompt.text == f"{CONTEXT}\n\nQuestion: Which city?\nAnswer:"
    assert prompt.answer_prefix == " "
    assert not prompt.messages


@pytest.mark.parametrize("style", list(PromptStyle))
def test_without_a_context_nothing_but_the_question_is_asked(style: PromptStyle) -> None:
    prompt = build_prompt("Which {context} city?", None, shipped(style.value))
    asked = prompt.text or prompt.messages[-1].content
    assert "Which {context} city?" in asked  # braces of the data are data
    assert "Context:" not in asked


@pytest.mark.parametrize("style", list(PromptStyle))
def test_what_ships_has_every_placeholder(style: PromptStyle) -> None:
    config = shipped(style.value)
    check_prompt(config)
    config.context = "only {question}"
    with pytest.raises(UserError, match=r"prompt\.context lacks the placeholder \{context\}"):
        check_prompt(config)
