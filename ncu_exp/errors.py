"""Errors that a user can mend. Each message says what is wrong, where, and what would work."""

import re

# Control characters but for tab and newline, marks that turn the direction of writing, and halves
# of surrogate pairs: what a terminal would obey, and no file could hold.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class UserError(Exception):
    """Something in the input, the options or the environment; shown without a traceback."""

    def __init__(self, message: str) -> None:
        super().__init__(visible(message))


def visible(text: str) -> str:
    """The text with what is not to be seen in it written out, as `\\x1b`."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


class DataError(UserError):
    """A corpus file that is missing or malformed: names the file, the row and the field."""


class NetworkError(UserError):
    """A hub that cannot be reached: names the local way to give the same thing."""


class PrecisionError(UserError):
    """A precision that the model, the device or the installed packages cannot give."""


class CredentialError(UserError):
    """A key that is not set: names the environment variable, never its value."""


class ModelError(UserError):
    """Weights or a tokenizer that cannot be had or cannot serve the request."""


class PerturbationError(UserError):
    """A perturbation that cannot be made at all (a tagger that is not installed)."""


class EndpointError(UserError):
    """A server that cannot be asked, or does not tell what it was asked for."""


class BudgetError(UserError):
    """A limit of requests, tokens or money that a job has reached; what it has is stored."""


class StoreError(UserError):
    """A store of scores or perturbations that cannot be read or written: names its file."""


class DiskFullError(UserError):
    """A folder in which there is no room: names it, and what is kept."""
