"""Errors, typed by the caller's next step.

An append ends in one of three ways: it returns (acked), raises AppendRefused (it did not happen), or raises
AppendUnknown (it may have happened). Wrong arguments raise TypeError and ValueError.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.codes import CODES, Code, CodeInfo, Fault

_UNLISTED = CodeInfo(
    "unlisted", "service", "never", "The server sent a code that this SDK does not know.", "Upgrade it."
)


class Failure(NamedTuple):
    """The reason of a failure, before it becomes an exception."""

    code: int
    message: str = ""
    retryable: bool = False
    retry_after_s: float = 0.0


class QuorateError(Exception):
    """Base class of all errors of this package."""


class CodedError(QuorateError):
    """An error with a code from sdk/contract/errors.json."""

    happened: str = ""

    def __init__(self, failure: Failure) -> None:
        info = CODES.get(failure.code, _UNLISTED)
        detail = f" ({failure.message})" if failure.message else ""
        happened = f" {self.happened}" if self.happened else ""
        super().__init__(f"{info.name}: {info.meaning}{detail}{happened} {info.action}")
        self.code: int = failure.code
        self.name: str = info.name
        self.fault: Fault = info.fault
        self.action: str = info.action
        self.message: str = failure.message
        self.retryable: bool = failure.retryable or info.retry != "never"
        """Whether the same call may succeed later."""
        self.retry_after_s: float = failure.retry_after_s


class AppendError(CodedError):
    """An append that was not acknowledged."""


class AppendRefused(AppendError):
    """The append did not happen and will not happen."""

    happened = "It did not happen."


class ConditionFailed(AppendRefused):
    """The log did not end at the expected offset."""


class Fenced(AppendRefused):
    """A newer fencing token has been used on the group."""


class AppendUnknown(AppendError):
    """The append may have happened, or may still happen. Retry it if a duplicate is harmless, else read the log."""

    happened = "Whether it happened is unknown."


class ReadRefused(CodedError):
    """A read, tail, trim or status call that cannot be answered."""


class Trimmed(ReadRefused):
    """The offset lies before the trim offset."""


class ConnectFailed(CodedError):
    """No replica of the group could be attached."""


class HandleError(QuorateError, ValueError):
    """The handle is malformed."""


class CursorError(QuorateError, ValueError):
    """The cursor is malformed, or of another group."""


def append_refused(failure: Failure) -> AppendRefused:
    if failure.code == Code.CONDITION_FAILED:
        return ConditionFailed(failure)
    if failure.code == Code.FENCED:
        return Fenced(failure)
    return AppendRefused(failure)


def read_refused(failure: Failure) -> ReadRefused:
    return Trimmed(failure) if failure.code == Code.TRIMMED else ReadRefused(failure)
