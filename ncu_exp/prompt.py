"""(Question, context) to a prompt, in one of the styles of the `prompt` group. Pure."""

from __future__ import annotations

import re

from ncu_exp.config import PromptConfig, PromptStyle
from ncu_exp.errors import UserError
from ncu_exp.records import Message, Prompt


def build_prompt(question: str, context: str | None, config: PromptConfig) -> Prompt:
    """The prompt that asks `question`, with `context` unless it is None.

    Chat styles give messages, whose template ends where the answer begins; the plain style gives
    text, where a space before the answer belongs to the answer.
    """
    template = config.zero if context is None else config.context
    asked = _fill(template, {"question": question, "context": context or ""})
    if config.name is PromptStyle.plain:
        return Prompt(text=asked, answer_prefix=" ")
    system = (Message("system", config.system),) if config.system else ()
    return Prompt(messages=(*system, Message("user", asked)))


def check_prompt(config: PromptConfig) -> None:
    """Raise UserError for templates that lack a placeholder."""
    for key, template, wanted in (
        ("prompt.zero", config.zero, ("{question}",)),
        ("prompt.context", config.context, ("{question}", "{context}")),
    ):
        for placeholder in wanted:
            if placeholder not in template:
                raise UserError(f"{key} lacks the placeholder {placeholder}.")


def _fill(template: str, values: dict[str, str]) -> str:
    # Not str.format: a template may hold braces of its own. One pass: a context may, too.
    return re.sub(r"\{(question|context)\}", lambda match: values[match[1]], template)
