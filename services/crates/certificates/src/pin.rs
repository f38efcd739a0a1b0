//! Join tokens as handed out: a secret, and the fingerprint of the coordinator's authority. The coordinator must show that
//! authority before the server sends the secret. The form is `qjt_….<64 hex digits>`, where the digits are
//! `openssl x509 -in ca.pem -outform der | sha256sum`.

use sha2::{Digest, Sha256};

/// SHA-256 as 64 hex digits.
pub fn fingerprint(der: &[u8]) -> String {
    Sha256::digest(der)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The token that the coordinator hands out.
pub fn with_pin(secret: &str, pin: &str) -> String {
    format!("{secret}.{pin}")
}

/// The part of a join token that is secret, and the pin if it has one.
pub fn split(token: &str) -> (&str, Option<&str>) {
    match token.split_once('.') {
        Some((secret, pin)) if is_pin(pin) => (secret, Some(pin)),
        Some((secret, _)) => (secret, None),
        None => (token, None),
    }
}

fn is_pin(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_apart_as_they_were_put_together() {
        let pin = fingerprint(b"an authority");
        let token = with_pin("qjt_secret", &pin);
        assert_eq!(split(&token), ("qjt_secret", Some(pin.as_str())));
        assert_eq!(split("qjt_secret"), ("qjt_secret", None));
        assert_eq!(split("qjt_secret.beef"), ("qjt_secret", None));
        assert_eq!(split(&token.to_uppercase()).1, None);
    }
}
