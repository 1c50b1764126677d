"""A server that speaks OpenAI's protocol: asked within limits, each of its answers stored.

Retries, back-off and Retry-After are the client library's own. What it cannot mend is either the
end of the job (a wrong key, a model that is not there) or one request's failure, with a reason.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ncu_exp.config import ApiConfig, ModelConfig
from ncu_exp.contents import ContentStore, content_key
from ncu_exp.errors import CredentialError, EndpointError
from ncu_exp.provenance import without_credentials
from ncu_exp.scoring.budget import Budget, Usage, usage_of

if TYPE_CHECKING:
    from openai import OpenAI

VERSION = 1  # of what a stored answer means
OPENAI_URL = "https://api.openai.com/v1"
FIRST_SERVED = "default"  # as a name: whatever the server names first
_NO_KEY = "none"  # the client insists on one; servers without keys take any
_LONGEST_REASON = 300


class AnswerError(Exception):
    """One request that has no usable answer; its text is the reason, a code first."""


class NoAnswerError(AnswerError):
    """A whole answer that says nothing: a refusal, an empty text, a filter. Asking again costs."""


class Endpoint:
    """An open endpoint. `ask` may be called from several threads.

    With a store, what was answered once is read from it, by server, model and request.
    """

    def __init__(self, model: ModelConfig, api: ApiConfig, *, store: ContentStore | None) -> None:
        self.config, self.api = model, api
        self.model = model.name  # as the server is asked for it
        self.url = (model.base_url or OPENAI_URL).rstrip("/")
        self.generation = 0  # of the weights behind the name, where they can be told apart
        self.budget = Budget(api, model.prices)
        self._store = store
        self._lock = threading.Lock()
        self._client: OpenAI | None = None
        self._served: list[dict[str, Any]] = []

    @property
    def key(self) -> str:
        return os.environ.get(self.config.api_key_env or "", "")

    @property
    def client(self) -> OpenAI:
        """The client library, opened on first use."""
        with self._lock:
            if self._client is None:
                from openai import OpenAI

                self._client = OpenAI(
                    api_key=self.key or _NO_KEY,
                    base_url=self.url,
                    timeout=self.api.timeout_s,
                    max_retries=self.api.max_retries,
                )
            return self._client

    def begin(self) -> None:
        """A new job: its limits count from here."""
        self.budget = Budget(self.api, self.config.prices)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        if self._store is not None:
            self._store.close()

    def recall(self, path: str, body: Mapping[str, Any], *, kind: str) -> Any:
        """What is stored for a request, or None."""
        if self._store is None:
            return None
        key = self._content(path, body, kind=kind)
        with self._lock:
            return self._store.read([key]).get(key)

    def keep(self, path: str, body: Mapping[str, Any], value: Any, *, kind: str) -> None:
        """Store something for a request."""
        if self._store is None:
            return
        values = {self._content(path, body, kind=kind): value}
        with self._lock:
            self._store.write(values, origin=f"{self.model} at {without_credentials(self.url)}")

    def send(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The server's answer to a request, not looked up and not stored; counted and bounded.

        Raises BudgetError before it is sent; CredentialError and EndpointError where no request
        can succeed; AnswerError where this one did not.
        """
        return self._send(self.client, path, body)

    def try_once(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """As `send`, for a request that the server may not know: a failure is not tried again."""
        return self._send(self.client.with_options(max_retries=0), path, body)

    def find_model(self) -> None:
        """Ask the server what it serves; the name `default` becomes what it names first.

        Raises EndpointError where nothing answers.
        """
        self._served = self._models()
        if self.model == FIRST_SERVED and self._served:
            self.model = str(self._served[0]["id"])

    def names(self) -> list[str]:
        """The model's name, and where its weights lie, if the server says so (vLLM's root)."""
        roots = [m.get("root") for m in self._served if m["id"] == self.model]
        return [self.model, *(str(root) for root in roots if root)]

    def _models(self) -> list[dict[str, Any]]:
        """What the server says that it serves; nothing where it does not say."""
        import openai

        try:
            told = self.client.with_options(max_retries=0).get("/models", cast_to=object)
        except openai.APIConnectionError as error:
            raise EndpointError(self._unreachable(error)) from None
        except (openai.OpenAIError, ValueError):
            return []
        found = told.get("data") if isinstance(told, dict) else None
        return [model for model in found or [] if isinstance(model, dict) and model.get("id")]

    def _send(self, client: OpenAI, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        number = self.budget.reserve(_most(body))
        used = Usage(0, 0)
        try:
            answer = self._post(client, path, {"model": self.model, **body})
            used = usage_of(answer)
            return answer
        finally:
            self.budget.settle(number, used)

    def _post(self, client: OpenAI, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        import openai

        try:
            answer = client.post(path, body=dict(body), cast_to=object)
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            variable = self.config.api_key_env
            hint = (
                f"check the environment variable {variable}"
                if variable
                else ("it needs a key: name its environment variable, model.api_key_env=NAME")
            )
            raise CredentialError(
                f"{self.config.label}: {self.url} refused the key ({self._said(error)}); {hint}."
            ) from None
        except openai.NotFoundError as error:
            raise EndpointError(
                f"{self.config.label}: {self.url} does not serve {self.model!r} at {path} "
                f"({self._said(error)})."
            ) from None
        except openai.RateLimitError as error:
            if error.code == "insufficient_quota":
                raise EndpointError(f"{self.config.label}: {self._said(error)}") from None
            raise AnswerError(f"rate_limited: {self._said(error)}") from None
        except openai.APITimeoutError:
            raise AnswerError(f"timed_out: no answer in {self.api.timeout_s:g} s") from None
        except openai.APIConnectionError as error:
            raise AnswerError(f"connection_lost: {self._said(error)}") from None
        except openai.InternalServerError as error:
            raise AnswerError(f"server_error: {self._said(error)}") from None
        except openai.APIStatusError as error:
            raise AnswerError(f"request_rejected: {self._said(error)}") from None
        except (openai.OpenAIError, ValueError) as error:
            raise AnswerError(f"malformed_answer: {self._said(error)}") from None
        if not isinstance(answer, dict):
            raise AnswerError("malformed_answer: not a JSON object")
        return answer

    def _unreachable(self, error: Exception) -> str:
        return (
            f"{self.config.label}: nothing answers at {without_credentials(self.url)} "
            f"({self._said(error)}). Start the server, or give its address: model.base_url=..."
        )

    def _said(self, error: Exception) -> str:
        """What an error says, in one line and without the key."""
        cause = error.__cause__
        text = " ".join(str(error if cause is None else f"{error} {cause}").split())
        if self.key:
            text = text.replace(self.key, "***")
        return without_credentials(text)[:_LONGEST_REASON]

    def _content(self, path: str, body: Mapping[str, Any], *, kind: str) -> str:
        # Through JSON, so that tuples and lists are one.
        asked = json.loads(json.dumps(body))
        return content_key("endpoint", VERSION, kind, self.url, self.model, self.generation,
                           path, asked)  # fmt: skip


def _most(body: Mapping[str, Any]) -> Usage:
    """The most tokens that a request can take: one for each byte that it holds, or each id."""
    prompt = body.get("prompt", body.get("messages"))
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], int):
        read = len(prompt)
    else:
        read = len(json.dumps(prompt, ensure_ascii=False).encode())
    return Usage(read, int(body.get("max_tokens") or 0) * int(body.get("n") or 1))
