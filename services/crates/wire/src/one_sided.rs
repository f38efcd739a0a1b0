//! Messages between servers about one-sided writes (`docs/internals/one-sided.md`). They stay on the socket.

use bytes::{BufMut, Bytes, BytesMut};

use crate::WireError;
use crate::cursor::{Reader, put_str8};
use crate::frame::{Frame, encode_frame};
use crate::peer::kind;

/// The first version of links whose servers know these messages.
pub const LINK_VERSION: u16 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OneSided {
    /// The receiver may write into the sender's ring.
    Offer(RingOffer),
    /// The sender has connected to the receiver's endpoint, and takes writes.
    Ready,
    /// The last frame on the socket: all others come through the ring.
    Switch,
    /// The receiver sleeps, and has to look at its ring.
    Wake,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingOffer {
    /// The provider and its endpoint's name: both sides must have the same one.
    pub provider: String,
    pub name: Bytes,
    /// The ring's first byte and key, as the provider counts them.
    pub base: u64,
    pub key: u64,
    /// Random: records for another ring are not taken.
    pub incarnation: u64,
}

const OFFER: u8 = 1;
const READY: u8 = 2;
const SWITCH: u8 = 3;
const WAKE: u8 = 4;

impl OneSided {
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        encode_frame(&mut out, kind::ONE_SIDED, 0, None, 0, |out| match self {
            OneSided::Offer(offer) => {
                out.put_u8(OFFER);
                put_str8(out, &offer.provider);
                out.put_u64_le(offer.base);
                out.put_u64_le(offer.key);
                out.put_u64_le(offer.incarnation);
                out.put_u16_le(offer.name.len() as u16);
                out.put_slice(&offer.name);
            }
            OneSided::Ready => out.put_u8(READY),
            OneSided::Switch => out.put_u8(SWITCH),
            OneSided::Wake => out.put_u8(WAKE),
        });
        out.freeze()
    }

    pub fn decode(frame: &Frame) -> Result<Self, WireError> {
        frame.expect_no_payload("a message about one-sided writes")?;
        let mut r = Reader::new(&frame.head, "a message about one-sided writes");
        Ok(match r.u8()? {
            OFFER => {
                let provider = r.str8()?;
                let (base, key, incarnation) = (r.u64()?, r.u64()?, r.u64()?);
                let length = usize::from(r.u16()?);
                OneSided::Offer(RingOffer {
                    provider,
                    name: Bytes::copy_from_slice(r.bytes(length)?),
                    base,
                    key,
                    incarnation,
                })
            }
            READY => OneSided::Ready,
            SWITCH => OneSided::Switch,
            WAKE => OneSided::Wake,
            _ => {
                return Err(WireError::Malformed {
                    what: "a message about one-sided writes",
                });
            }
        })
    }
}
