"""RFC 9457 problems: the exception for services, and the body for clients."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse

from quorate_api.coordinator.schemas import Refusal
from quorate_api.errors.catalogue import CATALOGUE, Code
from quorate_api.observability import counters


class FieldError(BaseModel):
    field: str = Field(description="Place of the fault: a field's path, or the name of a parameter or header.")
    message: str


class ProblemBody(BaseModel):
    """Every answer that is not a success (RFC 9457, `application/problem+json`)."""

    model_config = ConfigDict(title="Problem")

    type: str = Field(description="Address of the documentation of this code.")
    title: str
    status: int
    detail: str = Field(description="The error in this case, and what to do next.")
    code: Code
    request_id: str
    retryable: bool = Field(description="Whether the same request may succeed later.")
    errors: list[FieldError] = Field(description="The fields at fault; empty if no field is.")
    refusal: Refusal | None = Field(
        None, description="Set with `admission_refused`: the scarce resource, and an SLA that would fit."
    )


class Problem(Exception):
    """An answer that is not a success. Raising it undoes the request's transaction."""

    def __init__(
        self,
        code: Code,
        detail: str | None = None,
        *,
        errors: list[FieldError] | None = None,
        refusal: Refusal | None = None,
        retry_after_s: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(code.value)
        self.code = code
        self.detail = detail or CATALOGUE[code].action
        self.errors = errors or []
        self.refusal = refusal
        self.headers = dict(headers or {})
        if retry_after_s is not None:
            self.headers["Retry-After"] = str(retry_after_s)
        if CATALOGUE[code].status == 401:
            self.headers["WWW-Authenticate"] = 'Bearer realm="quorate"'

    def response(self, origin: str, request_id: str) -> JSONResponse:
        entry = CATALOGUE[self.code]
        counters.refusals.add(1, {"error.type": self.code.value})
        body: dict[str, Any] = {
            "type": f"{origin}/errors/{self.code.value}",
            "title": entry.title,
            "status": entry.status,
            "detail": self.detail,
            "code": self.code.value,
            "request_id": request_id,
            "retryable": entry.retry,
            "errors": [error.model_dump() for error in self.errors],
        }
        if self.refusal is not None:
            body["refusal"] = self.refusal.model_dump(mode="json")
        return JSONResponse(body, entry.status, headers=self.headers, media_type="application/problem+json")


def not_found(what: str) -> Problem:
    return Problem(Code.NOT_FOUND, f"There is no such {what} here.")


def invalid(field: str, message: str) -> Problem:
    """A field that is not valid, and why."""
    return Problem(
        Code.VALIDATION_FAILED, f"Not valid: {field}. {message}", errors=[FieldError(field=field, message=message)]
    )
