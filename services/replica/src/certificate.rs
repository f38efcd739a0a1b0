//! This server's key, its certificate, and the authority it trusts, in its data folder.
//!
//! - `tls-key.pem`: made at the first start; it never leaves the folder
//! - `ca.pem`: the authority, seen once against the join token's pin, and trusted alone from then on
//! - `tls-cert.pem`: the last certificate, shown on the control connection while it is good

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use quorate_certificates::control::{Trust, client_config, find_pinned};
use quorate_certificates::request;
use quorate_transport::tls::{OwnCertificate, ServerTls};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;

use crate::shared::Shared;

/// A renewal that was asked for and did not come is asked for again, at this part of the time that is left.
const ASK_AGAIN_PART: u32 = 10;
/// However little is left by this clock, which may be wrong.
const RENEW_DELAY_MIN: Duration = Duration::from_secs(1);

pub struct Certificates {
    data_dir: PathBuf,
    key_pem: String,
    request_pem: String,
    ca_pem: Option<String>,
    pin: Option<String>,
    own: Option<Own>,
}

struct Own {
    pem: String,
    not_after: SystemTime,
    /// For how long it was issued, and when it came, by a clock that nobody can set.
    lifetime: Duration,
    came: Instant,
}

impl Certificates {
    /// `pin`: of the join token, when there is one.
    pub fn load(data_dir: &Path, pin: Option<&str>) -> Result<Self, String> {
        let key_pem = load_or_create_key(&data_dir.join("tls-key.pem"))?;
        let request_pem =
            request::request(&key_pem).map_err(|e| format!("{}/tls-key.pem: {e}", data_dir.display()))?;
        let own = read(&data_dir.join("tls-cert.pem"))?;
        // A certificate that cannot be read is as good as none: the next registration brings another.
        let own = own.and_then(|pem| Own::new(pem).ok());
        Ok(Self {
            data_dir: data_dir.to_path_buf(),
            key_pem,
            request_pem,
            ca_pem: read(&data_dir.join("ca.pem"))?,
            pin: pin.map(str::to_string),
            own,
        })
    }

    pub fn request_pem(&self) -> String {
        self.request_pem.clone()
    }

    /// The proof that the coordinator has to show. The error says what to do.
    pub fn trust(&self) -> Result<Trust, String> {
        match (&self.ca_pem, &self.pin) {
            (Some(pem), _) => Ok(Trust::Authority(pem.clone())),
            (None, Some(pin)) => Ok(Trust::Pin(pin.clone())),
            (None, None) => Err(format!(
                "there is no {}/ca.pem to know the coordinator by, and no join token with a fingerprint: \
                 issue a join token (POST /v1/join-tokens of the coordinator) and pass it with --join-token-file",
                self.data_dir.display()
            )),
        }
    }

    /// Whether there is a certificate to show, good by this clock.
    pub fn can_show(&self) -> bool {
        self.own
            .as_ref()
            .is_some_and(|own| SystemTime::now() < own.not_after)
    }

    pub fn control_config(&self, show: bool) -> Result<Arc<ClientConfig>, String> {
        let own = self.own.as_ref().filter(|_| show);
        let own = own.map(|own| (own.pem.as_str(), self.key_pem.as_str()));
        let config = client_config(&self.trust()?, own);
        config.map(Arc::new).map_err(|e| e.to_string())
    }

    /// Keeps the authority that the coordinator has shown, after the first registration.
    pub fn keep_authority(&mut self, shown: &[CertificateDer<'_>]) -> Result<(), String> {
        if let (None, Some(pin)) = (&self.ca_pem, &self.pin) {
            let authority = find_pinned(shown, pin).ok_or("the coordinator showed no authority")?;
            let pem = request::to_pem(authority);
            save(&self.data_dir.join("ca.pem"), &pem)?;
            self.ca_pem = Some(pem);
        }
        Ok(())
    }

    /// Takes a new certificate into use: for handshakes from now on, on every thread.
    pub fn take(&mut self, pem: String, shared: &Shared) -> Result<(), String> {
        let own = Own::new(pem)?;
        match shared.access.known_tls() {
            Some(tls) => tls
                .own()
                .replace(&own.pem, &self.key_pem)
                .map_err(|e| e.to_string())?,
            None => {
                let ca_pem = self.ca_pem.as_deref().ok_or("no authority is known")?;
                let certificate = OwnCertificate::new(&own.pem, &self.key_pem).map_err(|e| e.to_string())?;
                let tls = ServerTls::new(ca_pem, certificate).map_err(|e| e.to_string())?;
                shared.access.set_tls(tls);
            }
        }
        save(&self.data_dir.join("tls-cert.pem"), &own.pem)?;
        tracing::info!(good_for_s = own.left().as_secs(), "new certificate");
        self.own = Some(own);
        Ok(())
    }

    /// The time to ask for the next one: at half of the rest of its lifetime.
    pub fn renew_in(&self) -> Duration {
        let left = self.own.as_ref().map_or(Duration::ZERO, Own::left);
        (left / 2).max(RENEW_DELAY_MIN)
    }

    pub fn ask_again_in(&self) -> Duration {
        let left = self.own.as_ref().map_or(Duration::ZERO, Own::left);
        (left / ASK_AGAIN_PART).max(RENEW_DELAY_MIN)
    }
}

impl Own {
    fn new(pem: String) -> Result<Self, String> {
        let (not_after, lifetime) = (request::not_after(&pem)?, request::lifetime(&pem)?);
        let came = Instant::now();
        Ok(Self {
            pem,
            not_after,
            lifetime,
            came,
        })
    }

    fn left(&self) -> Duration {
        let by_clock = self.not_after.duration_since(SystemTime::now());
        left(by_clock.unwrap_or_default(), self.lifetime, self.came.elapsed())
    }
}

/// By the wall clock, but no more than its lifetime leaves: a clock that is behind when the certificate comes would put
/// the renewal off until long after its end.
fn left(by_clock: Duration, lifetime: Duration, age: Duration) -> Duration {
    by_clock.min(lifetime.saturating_sub(age))
}

fn load_or_create_key(path: &Path) -> Result<String, String> {
    use std::os::unix::fs::PermissionsExt;
    let Some(pem) = read(path)? else {
        let pem = request::new_key();
        save(path, &pem)?;
        return Ok(pem);
    };
    let mode = std::fs::metadata(path)
        .map_err(|e| format!("{}: {e}", path.display()))?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        let (path, mode) = (path.display(), mode & 0o777);
        return Err(format!(
            "{path}: mode {mode:04o} lets others read it: chmod 600 it"
        ));
    }
    Ok(pem)
}

fn read(path: &Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    request::save(path, text).map_err(|error| format!("cannot save {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_behind_does_not_put_the_renewal_off() {
        let s = Duration::from_secs;
        assert_eq!(left(s(6), s(6), s(0)), s(6), "the clock is right");
        assert_eq!(left(s(2), s(6), s(4)), s(2));
        assert_eq!(left(s(3_606), s(6), s(1)), s(5), "it is an hour behind");
        assert_eq!(left(s(3_600), s(6), s(60)), s(0));
        assert_eq!(
            left(s(0), s(6), s(1)),
            s(0),
            "it is ahead, or the coordinator's is behind"
        );
    }
}
