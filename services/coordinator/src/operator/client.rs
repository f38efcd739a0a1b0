//! HTTP to the coordinators. The one that leads is looked for where a call needs it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use quorate_certificates::control::{Trust, client_config, coordinator_name};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;

use super::options::Access;
use crate::exit::Failure;
use crate::shell::read_admin_token;

const CALL: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(2);
/// An election takes half a second.
const FIND_LEADER: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(200);
const BODY_BYTES_MAX: usize = 1 << 20;

pub struct Client {
    addresses: Vec<String>,
    token: String,
    tls: Option<TlsConnector>,
}

/// Why a call has no good answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("{address}: {problem}")]
    Away { address: String, problem: String },
    #[error("{detail}")]
    Refused { code: String, detail: String },
}

impl Client {
    pub fn new(access: &Access) -> Result<Self, Failure> {
        let token = read_admin_token(&access.admin_token_file)?;
        let tls = access.ca.as_ref().map(|path| {
            let wrong =
                |problem: String| Failure::configuration(format!("--ca {}: {problem}", path.display()));
            let pem = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
            let config = client_config(&Trust::Authority(pem), None).map_err(|e| wrong(e.to_string()))?;
            Ok::<_, Failure>(TlsConnector::from(Arc::new(config)))
        });
        Ok(Self {
            addresses: access.coordinators.clone(),
            token,
            tls: tls.transpose()?,
        })
    }

    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Others are known now, too.
    pub fn learn(&mut self, address: &str) {
        let is_new = !address.is_empty() && !self.addresses.iter().any(|known| known == address);
        if is_new {
            self.addresses.push(address.to_string());
        }
    }

    /// A call to the one that leads. It is repeated while nobody leads, and never when it may have been done.
    pub async fn of_leader(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, CallError> {
        let until = Instant::now() + FIND_LEADER;
        loop {
            let mut last = None;
            for address in &self.addresses {
                match self.call(address, method.clone(), path, body.clone()).await {
                    Err(CallError::Refused { code, detail }) if code == "not_leader" => {
                        last = Some(CallError::Refused { code, detail });
                    }
                    Err(error @ CallError::Away { .. }) => {
                        last.get_or_insert(error);
                    }
                    other => return other,
                }
            }
            if Instant::now() > until {
                return Err(last.expect("there is an address"));
            }
            sleep(PAUSE).await;
        }
    }

    pub async fn call(
        &self,
        address: &str,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, CallError> {
        let away = |problem: String| CallError::Away {
            address: address.to_string(),
            problem,
        };
        let request = self.request(address, method, path, body);
        let stream = timeout(CONNECT, TcpStream::connect(address)).await;
        let stream = stream
            .map_err(|_| away("it does not answer".into()))?
            .map_err(|e| away(e.to_string()))?;
        let answered = match &self.tls {
            Some(tls) => {
                let shaken = timeout(CONNECT, tls.connect(coordinator_name(), stream)).await;
                let shaken = shaken.map_err(|_| away("it does not shake hands".into()))?;
                exchange(shaken.map_err(|e| away(e.to_string()))?, request).await
            }
            None if is_here(address) => exchange(stream, request).await,
            None => Err("it is on another machine: give its authority with --ca".into()),
        };
        let (status, bytes) = answered.map_err(away)?;
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        if status.is_success() {
            return Ok(answer);
        }
        let text = |field: &str| answer[field].as_str().map(str::to_string);
        Err(CallError::Refused {
            code: text("code").unwrap_or_default(),
            detail: text("detail").unwrap_or_else(|| status.to_string()),
        })
    }

    fn request(
        &self,
        address: &str,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Request<Full<Bytes>> {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, address)
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .header(CONTENT_TYPE, "application/json");
        request
            .body(Full::new(Bytes::from(body)))
            .expect("paths and addresses make a request")
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), String> {
    let talked = timeout(CALL, async {
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|e| e.to_string())?;
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(|e| e.to_string())?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), BODY_BYTES_MAX).collect().await;
        Ok((status, body.map_err(|e| e.to_string())?.to_bytes()))
    });
    talked.await.map_err(|_| "no answer in time".to_string())?
}

/// Whether the token stays on this machine.
fn is_here(address: &str) -> bool {
    let ip = address
        .parse::<SocketAddr>()
        .map(|address| address.ip())
        .or_else(|_| address.rsplit_once(':').map_or(address, |(host, _)| host).parse());
    ip.is_ok_and(|ip: IpAddr| ip.is_loopback()) || address.starts_with("localhost:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_travels_without_tls_to_this_machine_alone() {
        for (address, expected) in [
            ("127.0.0.1:7401", true),
            ("[::1]:7401", true),
            ("localhost:7401", true),
            ("10.0.0.1:7401", false),
            ("coordinator.example:7401", false),
            ("localhost.example:7401", false),
        ] {
            assert_eq!(is_here(address), expected, "{address}");
        }
    }
}
