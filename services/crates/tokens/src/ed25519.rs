//! The one algorithm of Quorate's tokens. `jsonwebtoken`'s own sets of algorithms bring RSA and two more curves along.

use ed25519_dalek::pkcs8::DecodePrivateKey;
use ed25519_dalek::{SigningKey, VerifyingKey};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};

static ED25519: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes Ed25519 the algorithm of `jsonwebtoken` in this process. A second call changes nothing.
pub fn install() {
    let _ = ED25519.install_default();
}

struct Ed25519Signer(SigningKey);

struct Ed25519Verifier(VerifyingKey);

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    only_ed25519(*algorithm)?;
    let key = SigningKey::from_pkcs8_der(key.as_bytes()).map_err(|_| ErrorKind::InvalidEddsaKey)?;
    Ok(Box::new(Ed25519Signer(key)))
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    only_ed25519(*algorithm)?;
    let bytes = key.try_get_as_bytes()?;
    let key = VerifyingKey::try_from(bytes).map_err(|_| ErrorKind::InvalidEddsaKey)?;
    Ok(Box::new(Ed25519Verifier(key)))
}

fn only_ed25519(algorithm: Algorithm) -> Result<(), Error> {
    match algorithm {
        Algorithm::EdDSA => Ok(()),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

impl Signer<Vec<u8>> for Ed25519Signer {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(self.0.try_sign(message)?.to_vec())
    }
}

impl JwtSigner for Ed25519Signer {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

impl Verifier<Vec<u8>> for Ed25519Verifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let signature = ed25519_dalek::Signature::from_slice(signature)?;
        self.0.verify_strict(message, &signature)
    }
}

impl JwtVerifier for Ed25519Verifier {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}
