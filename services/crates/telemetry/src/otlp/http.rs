//! Requests to the collector, on the exporters' own threads: blocking, bounded in time, failures logged once.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

const TIMEOUT: Duration = Duration::from_secs(2);
/// An answer is short: the number of rejected items, and the reason.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

#[derive(Debug)]
pub struct Client {
    agent: ureq::Agent,
    endpoint: String,
    is_away: AtomicBool,
}

impl Client {
    pub fn new(endpoint: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .proxy(None)
            .build();
        Self {
            agent: config.into(),
            endpoint: endpoint.to_string(),
            is_away: AtomicBool::new(false),
        }
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let answer = self.agent.run(Request::from_parts(parts, &body[..]))?;
        let (parts, body) = answer.into_parts();
        let mut bytes = Vec::new();
        body.into_reader()
            .take(ANSWER_BYTES_MAX)
            .read_to_end(&mut bytes)?;
        Ok(Response::from_parts(parts, Bytes::from(bytes)))
    }

    /// Logs a change between working and failing.
    fn log(&self, failure: Option<String>) {
        let was_away = self.is_away.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(reason) if !was_away => {
                tracing::warn!(
                    endpoint = self.endpoint,
                    reason,
                    "traces and metrics cannot be exported"
                );
            }
            None if was_away => {
                tracing::info!(endpoint = self.endpoint, "traces and metrics are exported again")
            }
            _ => {}
        }
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.send(request);
        self.log(match &answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("the collector answered {}", answer.status())),
            Err(error) => Some(error.to_string()),
        });
        answer
    }
}
