//! Bodies of requests, and the result type of calls.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use serde::de::DeserializeOwned;

use super::problem::Problem;

pub type Answer<T> = Result<T, Problem>;
pub type Body = Result<Bytes, BytesRejection>;

/// Reads a JSON body. The error names the field at fault.
pub fn parse<T: DeserializeOwned>(body: Body) -> Answer<T> {
    let body = body?;
    let mut json = serde_json::Deserializer::from_slice(&body);
    let parsed = serde_path_to_error::deserialize(&mut json).map_err(|e| {
        let field = Some(e.path().to_string())
            .filter(|path| path != ".")
            .unwrap_or_default();
        let readable = e.inner().is_data();
        let status = if readable {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::BAD_REQUEST
        };
        Problem::invalid(status, field, e.into_inner().to_string())
    })?;
    json.end()
        .map_err(|e| Problem::invalid(StatusCode::BAD_REQUEST, "", e.to_string()))?;
    Ok(parsed)
}
