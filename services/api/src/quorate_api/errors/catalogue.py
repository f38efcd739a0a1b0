"""Every problem code of the API, the one source for the OpenAPI enum and `sdk/contract/problems.json`.

The pages in `docs/operating/errors/` and the pages that `type` links to come from it too. Regenerate them with
`quorate-api openapi`."""

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    MALFORMED_JSON = "malformed_json"
    VALIDATION_FAILED = "validation_failed"
    BODY_TOO_LARGE = "body_too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    CURSOR_INVALID = "cursor_invalid"
    NOT_AUTHENTICATED = "not_authenticated"
    CREDENTIALS_INVALID = "credentials_invalid"
    SESSION_EXPIRED = "session_expired"
    SECOND_FACTOR_REQUIRED = "second_factor_required"
    SECOND_FACTOR_WRONG = "second_factor_wrong"
    CONFIRMATION_REQUIRED = "confirmation_required"
    IDENTITY_REFUSED = "identity_refused"
    LINK_INVALID = "link_invalid"
    MAIL_OFF = "mail_off"
    LAST_OWNER = "last_owner"
    MEMBER_ALREADY = "member_already"
    CSRF_TOKEN_INVALID = "csrf_token_invalid"  # noqa: S105 - a code
    PERMISSION_DENIED = "permission_denied"
    ORGANIZATION_INACTIVE = "organization_inactive"
    CLOSURE_REFUSED = "closure_refused"
    QUOTA_EXCEEDED = "quota_exceeded"
    NOT_FOUND = "not_found"
    OPERATOR_ELSEWHERE = "operator_elsewhere"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    EMAIL_TAKEN = "email_taken"
    NAME_TAKEN = "name_taken"
    PROJECT_NOT_EMPTY = "project_not_empty"
    DELETION_PROTECTED = "deletion_protected"
    SERVER_ALIVE = "server_alive"
    TOO_MANY_JOIN_TOKENS = "too_many_join_tokens"
    MOVE_REFUSED = "move_refused"
    ADMISSION_REFUSED = "admission_refused"
    GUARANTEE_REFUSED = "guarantee_refused"
    SPEND_CAP = "spend_cap"
    GROUP_NOT_READY = "group_not_ready"
    GROUP_LOST = "group_lost"
    GROUP_NOT_LOST = "group_not_lost"
    GROUP_IS_PARTITION = "group_is_partition"
    PARTITIONS_BUSY = "partitions_busy"
    DOCUMENT_TOO_LARGE = "document_too_large"
    MONTH_NOT_CLOSED = "month_not_closed"
    NOTHING_DUE = "nothing_due"
    PAYMENT_RECORDED = "payment_recorded"
    PAYMENT_EXCEEDS_DUE = "payment_exceeds_due"
    PAYMENT_IN_PROGRESS = "payment_in_progress"
    SIGNATURE_INVALID = "signature_invalid"
    IDEMPOTENCY_IN_PROGRESS = "idempotency_in_progress"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    PRECONDITION_FAILED = "precondition_failed"
    RATE_LIMITED = "rate_limited"
    COORDINATOR_UNAVAILABLE = "coordinator_unavailable"
    DATABASE_UNAVAILABLE = "database_unavailable"
    PAYMENT_PROVIDER_UNAVAILABLE = "payment_provider_unavailable"
    IDENTITY_PROVIDER_UNAVAILABLE = "identity_provider_unavailable"
    OVERLOADED = "overloaded"
    INTERNAL = "internal"


class Fault(StrEnum):
    CLIENT = "client"
    SERVICE = "service"
    NOBODY = "nobody"


class Outcome(StrEnum):
    """Whether the request took effect."""

    REFUSED = "refused"  # it did not
    UNKNOWN = "unknown"  # it may have; repeat with the same Idempotency-Key


@dataclass(frozen=True, slots=True)
class Entry:
    status: int
    title: str
    action: str
    fault: Fault = Fault.CLIENT
    retry: bool = False
    outcome: Outcome = Outcome.REFUSED


CATALOGUE: dict[Code, Entry] = {
    Code.MALFORMED_JSON: Entry(400, "The body is not JSON", "Send a JSON object, encoded as UTF-8."),
    Code.VALIDATION_FAILED: Entry(
        422, "The request is not valid", "Correct the fields that `errors` names; unknown fields are not accepted."
    ),
    Code.BODY_TOO_LARGE: Entry(413, "The body is too large", "Send less: no request of this API needs 64 KiB."),
    Code.UNSUPPORTED_MEDIA_TYPE: Entry(
        415, "The body must be JSON", "Send the header `Content-Type: application/json`."
    ),
    Code.CURSOR_INVALID: Entry(
        400, "The cursor is not valid", "Use `next_cursor` of the previous page as it is, with the same list."
    ),
    Code.NOT_AUTHENTICATED: Entry(
        401, "Not authenticated", "Send `Authorization: Bearer qk_…` with an API key, or log in."
    ),
    Code.CREDENTIALS_INVALID: Entry(
        401, "Wrong e-mail, password or key", "Check it for typing errors; a revoked key stays revoked."
    ),
    Code.SESSION_EXPIRED: Entry(401, "The session is over", "Log in again."),
    Code.SECOND_FACTOR_REQUIRED: Entry(
        401,
        "A second factor is required",
        "Send `code`, too: six digits of the authenticator, or a recovery code.",
    ),
    Code.SECOND_FACTOR_WRONG: Entry(
        401,
        "The code is wrong",
        "Send the code that the authenticator shows now; each works once. A recovery code works, too, once.",
    ),
    Code.CONFIRMATION_REQUIRED: Entry(
        403,
        "Confirm that it is you",
        "Send the password or a code to `POST /v1/me/confirm`, then repeat the request. It lasts for 15 minutes.",
    ),
    Code.IDENTITY_REFUSED: Entry(
        401,
        "The identity is not accepted",
        "Begin again, in the same browser. If it happens again, log in another way, and tell the service's operators.",
    ),
    Code.LINK_INVALID: Entry(
        409,
        "The link does not work any more",
        "It was used, replaced by a newer one, or is too old. Request another one.",
    ),
    Code.MAIL_OFF: Entry(
        409,
        "This service sends no mail",
        "Ask its operators to set QUORATE_MAIL.",
    ),
    Code.LAST_OWNER: Entry(
        409,
        "An organization has an owner",
        "Make another member an owner first.",
    ),
    Code.MEMBER_ALREADY: Entry(
        409,
        "The person is a member already",
        "Change the role of the member instead.",
    ),
    Code.CSRF_TOKEN_INVALID: Entry(
        403, "The CSRF token is missing or wrong", "Send `X-CSRF-Token` with the `csrf_token` that `GET /v1/me` gives."
    ),
    Code.PERMISSION_DENIED: Entry(
        403, "Not permitted", "Ask an owner of the organization for the role, or use a key with the scope named here."
    ),
    Code.ORGANIZATION_INACTIVE: Entry(
        403,
        "The organization is suspended or closing",
        "Reading works still. `GET /v1/organization` says why it is so, and what ends it.",
    ),
    Code.CLOSURE_REFUSED: Entry(
        409,
        "The organization cannot close now",
        "Do what `detail` names first: take guarantees back, wait for commitments to end, pay invoices.",
    ),
    Code.QUOTA_EXCEEDED: Entry(
        403,
        "A quota is used up",
        "Delete unneeded resources, or request a higher quota. `GET /v1/quotas` shows limits and use.",
    ),
    Code.NOT_FOUND: Entry(404, "Not found", "Check the id. Resources of other organizations are not found either."),
    Code.OPERATOR_ELSEWHERE: Entry(
        404,
        "Operators’ calls have another address",
        "Call the operators' address: the API listens for them at `QUORATE_OPERATOR_LISTEN`. Nothing is known of the "
        "resource here.",
    ),
    Code.METHOD_NOT_ALLOWED: Entry(405, "Method not allowed", "See the API reference for what this address accepts."),
    Code.EMAIL_TAKEN: Entry(409, "There is an account with this e-mail", "Log in instead."),
    Code.NAME_TAKEN: Entry(409, "The name is taken", "Choose another name."),
    Code.PROJECT_NOT_EMPTY: Entry(
        409,
        "The project is not empty",
        "Delete its groups first; that deletes their logs. Take back its guarantee, if it has one.",
    ),
    Code.DELETION_PROTECTED: Entry(
        409,
        "The group is protected from deletion",
        "If its log may really go, take the protection away first: in the group's settings, with "
        "`PUT /v1/groups/{id}/settings`, or with `deletion_protection = false` in Terraform.",
    ),
    Code.SERVER_ALIVE: Entry(
        409,
        "The server is alive",
        "Only a failed server can be removed from the fleet. Drain a living server, then stop it.",
    ),
    Code.TOO_MANY_JOIN_TOKENS: Entry(
        409, "Too many join tokens wait to be used", "Use the existing tokens, or wait until they expire."
    ),
    Code.MOVE_REFUSED: Entry(
        409,
        "The replica cannot move now",
        "`detail` says why. Choose another server, or retry when the group is whole and nothing of it moves.",
    ),
    Code.ADMISSION_REFUSED: Entry(
        409,
        "The fleet cannot promise this SLA",
        "`refusal` names the scarce resource, and an SLA that would fit if there is one. Request that, or retry later.",
        Fault.NOBODY,
    ),
    Code.GUARANTEE_REFUSED: Entry(
        409,
        "The fleet cannot promise this guarantee",
        "Ask for as many shared tokens as `detail` says to fit, or retry later.",
        Fault.NOBODY,
    ),
    Code.SPEND_CAP: Entry(
        409,
        "The spend cap leaves no room",
        "Raise or remove the cap (`PUT /v1/budgets`), or reserve less. Groups that are deleted cost nothing more.",
    ),
    Code.GROUP_NOT_READY: Entry(
        409,
        "The group has no servers yet",
        "Retry in a second. The group's `status` shows when it is placed.",
        Fault.SERVICE,
        retry=True,
    ),
    Code.GROUP_LOST: Entry(
        409,
        "The group’s log is lost",
        "Every replica of it is gone. Its owner may reset the group: `POST /v1/groups/{id}/reset`.",
        Fault.SERVICE,
    ),
    Code.GROUP_NOT_LOST: Entry(
        409,
        "The group is not lost",
        "The group keeps its log, so there is nothing to reset. To empty a group, delete it and create another.",
    ),
    Code.GROUP_IS_PARTITION: Entry(
        409,
        "The group is a partition of another",
        "Change, delete or connect to the group that it is a partition of; `partition_of` names it.",
    ),
    Code.PARTITIONS_BUSY: Entry(
        409,
        "The partitions cannot change now",
        "Retry when `GET /v1/groups/{id}/partitions` shows all of them active and in use. Nothing has changed.",
        Fault.SERVICE,
        retry=True,
    ),
    Code.DOCUMENT_TOO_LARGE: Entry(
        409,
        "The document has too many lines for a PDF",
        "Read all of its lines as CSV: `GET /v1/invoices/{id}/lines.csv`.",
    ),
    Code.MONTH_NOT_CLOSED: Entry(
        409,
        "An earlier month is not closed yet",
        "Repeat the request once the earlier month has its invoice, some six hours after its end. Late telemetry may "
        "still move use between the two months.",
        Fault.NOBODY,
        retry=True,
    ),
    Code.NOTHING_DUE: Entry(
        409,
        "Nothing is due",
        "Nothing is left to pay. `payment` of the invoice shows what was paid.",
    ),
    Code.PAYMENT_RECORDED: Entry(
        409,
        "It is recorded already",
        "The invoice has an entry with this reference. Other money is recorded under a reference of its own.",
    ),
    Code.PAYMENT_EXCEEDS_DUE: Entry(
        409,
        "The amount exceeds what is due",
        "Record what is due at most, and what is above for another invoice.",
    ),
    Code.PAYMENT_IN_PROGRESS: Entry(
        409,
        "A payment of this invoice is being confirmed",
        "Wait for `Retry-After` seconds and read the invoice again. Pay only what is still due then.",
        Fault.NOBODY,
        retry=True,
    ),
    Code.SIGNATURE_INVALID: Entry(
        400,
        "The signature is not valid",
        "Sign the body as it is sent, with the endpoint's present secret, at most five minutes before.",
    ),
    Code.IDEMPOTENCY_IN_PROGRESS: Entry(
        409,
        "A request with this Idempotency-Key is running",
        "Repeat the request after `Retry-After` to get its answer.",
        Fault.NOBODY,
        retry=True,
        outcome=Outcome.UNKNOWN,
    ),
    Code.IDEMPOTENCY_KEY_REUSED: Entry(
        422, "The Idempotency-Key was used for another request", "Use a new random key for each new request."
    ),
    Code.PRECONDITION_FAILED: Entry(
        412,
        "The resource has changed meanwhile",
        "Read the resource again, decide again, and send its new ETag in If-Match.",
    ),
    Code.RATE_LIMITED: Entry(429, "Too many requests", "Wait for `Retry-After` seconds.", retry=True),
    Code.COORDINATOR_UNAVAILABLE: Entry(
        503,
        "The coordinator does not answer",
        "Repeat with the same Idempotency-Key. Existing groups continue to serve.",
        Fault.SERVICE,
        retry=True,
        outcome=Outcome.UNKNOWN,
    ),
    Code.DATABASE_UNAVAILABLE: Entry(
        503,
        "The database does not answer",
        "Repeat with the same Idempotency-Key. Existing groups continue to serve.",
        Fault.SERVICE,
        retry=True,
        outcome=Outcome.UNKNOWN,
    ),
    Code.PAYMENT_PROVIDER_UNAVAILABLE: Entry(
        503,
        "The payment provider does not answer",
        "Repeat with the same Idempotency-Key. No money has moved.",
        Fault.SERVICE,
        retry=True,
        outcome=Outcome.UNKNOWN,
    ),
    Code.IDENTITY_PROVIDER_UNAVAILABLE: Entry(
        503,
        "The identity provider does not answer",
        "Try again in a moment, or log in with your password or a passkey.",
        Fault.SERVICE,
        retry=True,
    ),
    Code.OVERLOADED: Entry(
        503, "The server is overloaded", "Wait for `Retry-After` seconds.", Fault.SERVICE, retry=True
    ),
    Code.INTERNAL: Entry(
        500,
        "Internal error",
        "Repeat with the same Idempotency-Key. If the error persists, report the `request_id`.",
        Fault.SERVICE,
        retry=True,
        outcome=Outcome.UNKNOWN,
    ),
}

assert set(CATALOGUE) == set(Code), "every code has an entry"


def as_contract() -> dict[str, object]:
    """The content of `sdk/contract/problems.json`."""
    return {
        "comment": "Codes of the API's problems (RFC 9457). Generated from quorate_api.errors.catalogue by "
        "`quorate-api openapi`. outcome: refused (it did not happen) or unknown (it may have).",
        "api": [
            {
                "code": code.value,
                "status": entry.status,
                "title": entry.title,
                "fault": entry.fault.value,
                "retry": entry.retry,
                "outcome": entry.outcome.value,
                "action": entry.action,
            }
            for code, entry in CATALOGUE.items()
        ],
    }


def as_page(code: Code) -> str:
    """The page in `docs/operating/errors/`."""
    entry = CATALOGUE[code]
    outcome = "It did not happen." if entry.outcome is Outcome.REFUSED else "Whether it happened is unknown."
    whose = {Fault.CLIENT: "the request's", Fault.SERVICE: "ours", Fault.NOBODY: "nobody's"}[entry.fault]
    return (
        f"<!-- Generated by `quorate-api openapi` from the catalogue of codes; do not edit. -->\n"
        f"# {code.value}\n\n**{entry.title}** (HTTP {entry.status})\n\n"
        f"- Whose fault: {whose}.\n- Retry: {'yes' if entry.retry else 'not as it is'}.\n- {outcome}\n\n"
        f"Action: {entry.action}\n"
    )
