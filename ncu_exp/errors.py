"""Errors that a user can mend. Each message says what is wrong, where, and what would work."""


class UserError(Exception):
    """Something in the input, the options or the environment; shown without a traceback."""


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
