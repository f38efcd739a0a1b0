//! Errors as RFC 9457 problems.

use axum::Json;
use axum::extract::rejection::BytesRejection;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use quorate_coordinator_core::command::GuaranteeRefusal;
use quorate_types::sla::Refusal;
use serde::Serialize;

use crate::shell::task::Unavailable;

#[derive(Debug, Serialize)]
pub struct Problem {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    detail: String,
    code: &'static str,
    errors: Vec<FieldError>,
    #[serde(flatten)]
    more: Option<Box<More>>,
}

/// Members of some problems alone.
#[derive(Debug, Serialize)]
struct More {
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Refused>,
    /// The coordinator that leads: `host:port` of its HTTP interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Refused {
    Sla(Refusal),
    Guarantee(GuaranteeRefusal),
}

#[derive(Debug, Serialize)]
pub struct FieldError {
    field: String,
    message: String,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, title: &'static str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:quorate:problem:{code}"),
            title,
            status: status.as_u16(),
            detail: detail.into(),
            code,
            errors: Vec::new(),
            more: None,
        }
    }

    /// `status` is 400 for an unreadable request, 422 for a value that is not allowed.
    pub fn invalid(status: StatusCode, field: impl Into<String>, message: impl Into<String>) -> Self {
        let (field, message) = (field.into(), message.into());
        let detail = if field.is_empty() {
            message.clone()
        } else {
            format!("{field}: {message}")
        };
        let mut problem = Self::new(status, "invalid_request", "The request is not valid", detail);
        problem.errors.push(FieldError { field, message });
        problem
    }

    pub fn refused(refusal: Refusal) -> Self {
        let title = "The SLA does not fit the fleet now";
        let mut problem = Self::new(
            StatusCode::CONFLICT,
            "admission_refused",
            title,
            refusal.message.clone(),
        );
        problem.more = Some(Box::new(More {
            refusal: Some(Refused::Sla(refusal)),
            leader: None,
        }));
        problem
    }

    pub fn guarantee_refused(refusal: GuaranteeRefusal) -> Self {
        let (status, title) = (StatusCode::CONFLICT, "The guarantee does not fit the fleet now");
        let mut problem = Self::new(status, "guarantee_refused", title, refusal.message.clone());
        problem.more = Some(Box::new(More {
            refusal: Some(Refused::Guarantee(refusal)),
            leader: None,
        }));
        problem
    }

    pub fn conflict(code: &'static str, detail: String) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            code,
            "The request conflicts with what is there",
            detail,
        )
    }

    pub fn not_found(detail: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "Not found", detail)
    }

    pub fn method_not_allowed() -> Self {
        let detail = "The call exists, with another method.";
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "Method not allowed",
            detail,
        )
    }

    pub fn unauthorized(token_given: bool) -> Self {
        let detail = if token_given {
            "The token is not the one in --admin-token-file."
        } else {
            "Send Authorization: Bearer with the token in --admin-token-file."
        };
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "Not authorized", detail)
    }

    pub fn too_many_waiting() -> Self {
        let detail = "Too many calls wait for events; ask with wait_ms=0, or later.";
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too_many_waiting",
            "Busy",
            detail,
        )
    }
}

impl From<BytesRejection> for Problem {
    fn from(rejection: BytesRejection) -> Self {
        let code = if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            "body_too_large"
        } else {
            "body_unreadable"
        };
        Self::new(
            rejection.status(),
            code,
            "The body cannot be read",
            rejection.body_text(),
        )
    }
}

impl From<Unavailable> for Problem {
    fn from(error: Unavailable) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        match error {
            Unavailable::Unknown => {
                let detail = format!(
                    "{error}; whether a change was made is unknown. Repeat the call: it is idempotent."
                );
                Self::new(status, "unavailable", "Not available now", detail)
            }
            Unavailable::NotLeader { leader } => {
                let detail = match &leader {
                    Some(leader) => {
                        format!("The coordinator at {leader} leads: call that one. Nothing was done.")
                    }
                    None => "No coordinator is known to lead: call again, or another one. Nothing was done."
                        .into(),
                };
                let mut problem = Self::new(status, "not_leader", "This coordinator does not lead", detail);
                problem.more = Some(Box::new(More {
                    leader,
                    refusal: None,
                }));
                problem
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
