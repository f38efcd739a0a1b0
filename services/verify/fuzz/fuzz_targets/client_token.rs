//! The token check: no token passes without the right signature over claims that allow it, and none makes it panic.

#![cfg_attr(fuzzing, no_main)]

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signature, Signer, SigningKey};
use quorate_fuzz::Input;
use quorate_tokens::Keys;
use quorate_types::GroupId;
use serde_json::{Value, json};

/// Keys of the fuzzer; they protect nothing.
static RIGHT: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::from_bytes(&[7; 32]));
static WRONG: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::from_bytes(&[8; 32]));
const KEY_ID: &str = "k1";
const GROUP: &str = "01930f3c-5f4e-7cc3-98c4-dc0c0c07398f";
const LEEWAY_S: u64 = 5;

static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let x = URL_SAFE_NO_PAD.encode(RIGHT.verifying_key().to_bytes());
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": KEY_ID, "x": x});
    Keys::from_jwks(&json!({"keys": [jwk]})).expect("a sound JWKS")
});

quorate_fuzz::program!(run);

fn run(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 4 {
        0 => any_text(input.rest()),
        1 => signed(input, &RIGHT),
        2 => signed(input, &WRONG),
        _ => tampered(input),
    }
}

fn any_text(bytes: &[u8]) {
    judge(&String::from_utf8_lossy(bytes));
}

/// Any header and any claims, truly signed by one of the two keys.
fn signed(mut input: Input<'_>, key: &SigningKey) {
    let own_header = input.byte().is_multiple_of(2);
    let header = match own_header {
        true => json!({"alg": "EdDSA", "typ": "JWT", "kid": KEY_ID})
            .to_string()
            .into_bytes(),
        false => {
            let len = usize::from(input.byte());
            input.bytes(len).to_vec()
        }
    };
    judge(&token(&header, input.rest(), key));
}

/// A sound token with one character replaced.
fn tampered(mut input: Input<'_>) {
    let header = json!({"alg": "EdDSA", "typ": "JWT", "kid": KEY_ID}).to_string();
    let claims = json!({"iss": "quorate-api", "aud": "quorate-data", "sub": "u", "exp": 1u64 << 40,
        "grants": [{"group": GROUP, "ops": ["append", "read"]}]});
    let sound = token(header.as_bytes(), claims.to_string().as_bytes(), &RIGHT);
    assert!(check(&sound), "a sound token passes");
    let mut text = sound.clone().into_bytes();
    let at = usize::from(input.u16()) % text.len();
    text[at] = b"AZaz09-_.="[usize::from(input.byte()) % 10];
    judge(&String::from_utf8(text).expect("ASCII"));
}

fn token(header: &[u8], claims: &[u8], key: &SigningKey) -> String {
    let signed = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(claims)
    );
    let signature = key.sign(signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()))
}

fn check(token: &str) -> bool {
    let _ = KEYS.check_peer(token);
    KEYS.check_client(token, group()).is_ok()
}

fn group() -> GroupId {
    GroupId(GROUP.parse().expect("a UUID"))
}

/// A token that passes must be allowed to, by another reading of the same token.
fn judge(token: &str) {
    if check(token) {
        let problem = problem(token);
        assert_eq!(problem, None, "passed: {token}");
    }
    if let Ok(server) = KEYS.check_peer(token) {
        let claims = claims(token).expect("a passing token has claims");
        assert_eq!(claims["iss"], "quorate-coordinator");
        assert_eq!(claims["sub"], json!(format!("server:{}", server.0)));
        assert!(is_signed(token), "passed without a signature: {token}");
    }
}

fn problem(token: &str) -> Option<&'static str> {
    if !is_signed(token) {
        return Some("no signature");
    }
    let Some(claims) = claims(token) else {
        return Some("no claims");
    };
    let now_s = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs();
    let is_live = claims["exp"]
        .as_f64()
        .is_some_and(|exp| exp + LEEWAY_S as f64 + 2.0 >= now_s as f64);
    let names = |claim: &str, wanted: &str| match &claims[claim] {
        Value::Array(list) => list.iter().any(|one| one == wanted),
        one => one == wanted,
    };
    let is_granted = claims["grants"].as_array().is_some_and(|grants| {
        let group_of = |grant: &Value| {
            grant["group"]
                .as_str()
                .and_then(|text| text.parse().ok())
                .map(GroupId)
        };
        grants.iter().any(|grant| group_of(grant) == Some(group()))
    });
    match () {
        () if !is_live => Some("expired"),
        () if !names("iss", "quorate-api") => Some("issuer"),
        () if !names("aud", "quorate-data") => Some("audience"),
        () if !is_granted => Some("no grant"),
        () => None,
    }
}

fn is_signed(token: &str) -> bool {
    let Some((signed, signature)) = token.rsplit_once('.') else {
        return false;
    };
    let bytes = URL_SAFE_NO_PAD.decode(signature).ok();
    let signature = bytes.and_then(|bytes| Signature::from_slice(&bytes).ok());
    signature.is_some_and(|s| RIGHT.verifying_key().verify_strict(signed.as_bytes(), &s).is_ok())
}

fn claims(token: &str) -> Option<Value> {
    let claims = token.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}
