"""What went wrong with a tracking store: away for now, or an answer that no retry would mend."""

from __future__ import annotations

from functools import cache

from ncu_exp.errors import UserError
from ncu_exp.provenance import without_credentials

# Codes of MLflow's that a server or a database gives while it cannot serve (HTTP 429, 503, 504).
_PASSING = (
    "TEMPORARILY_UNAVAILABLE",
    "DEADLINE_EXCEEDED",
    "REQUEST_LIMIT_EXCEEDED",
    "RESOURCE_EXHAUSTED",
    "CANCELLED",
    "ABORTED",
)
# Phrases of answers that come under a passing code, or under none, and do not pass.
_LASTING = (
    "authentication failed",  # PostgreSQL: the password
    "no pg_hba.conf entry",
    "does not exist",  # PostgreSQL: the database, the role
    "no such table",  # SQLite: another program's database
    "no such column",
    "file is not a database",
    "unable to open database file",
    "readonly database",
    "CERTIFICATE_VERIFY_FAILED",
)
_LOCKED = ("database is locked", "database or disk is full", "disk I/O error")
_HINTS = {
    "401": "Set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN.",
    "403": "This user may not do that there: ask whoever runs the server.",
}


@cache
def store_errors() -> tuple[type[Exception], ...]:
    """Every kind of exception that a tracking store raises; OSError for its artifacts."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return (MlflowException, SQLAlchemyError, OSError, ImportError)


def delivery_errors() -> tuple[type[Exception], ...]:
    """What keeps a journal from the store: the store's errors, and UserError of the journal."""
    return (*store_errors(), UserError)


def is_passing(error: Exception) -> bool:
    """Whether the store may answer later as things stand: it is away, busy or locked.

    Judged by MLflow's error code (an HTTP status is one); where the code is the general one, by
    whether a request was sent that brought no answer, or a server's own failure (5xx).
    """
    from mlflow.exceptions import MlflowException, RestException
    from sqlalchemy.exc import InterfaceError, OperationalError

    told = str(error)
    if any(phrase in told for phrase in _LASTING):
        return False
    if isinstance(error, OperationalError | InterfaceError | ConnectionError):
        return True
    if not isinstance(error, MlflowException):
        return any(phrase in told for phrase in _LOCKED)
    if error.error_code in _PASSING:
        return True
    if error.error_code != "INTERNAL_ERROR":
        return False
    failed = told.startswith("API request to ") and " failed with " in told
    return failed or isinstance(error, RestException) or any(p in told for p in _LOCKED)


def told(error: Exception) -> str:
    """The first line of an error, without a password, and what to do where that is known."""
    line = without_credentials(str(error).strip().partition("\n")[0]) or type(error).__name__
    for status, hint in _HINTS.items():
        if f"error code {status}" in line:
            return f"{line} {hint}"
    return line
