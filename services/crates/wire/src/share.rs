//! SHARE: what servers tell one another about free capacity (`docs/internals/chain.md`, "Sharing what is free").
//!
//! It concerns no log: whatever of it is lost, late or not understood, groups keep what they reserved.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_types::{Epoch, GroupId};
use uuid::Uuid;

use crate::WireError;
use crate::cursor::Reader;
use crate::frame::{Frame, encode_frame};
use crate::peer::kind;

/// Of this format. Servers tell theirs in ALIVE, and send SHARE only to those who told one; frames of a version that
/// is not known are ignored.
pub const SHARE_VERSION: u8 = 1;

/// Entries of one frame, so that its head fits 16 bits of length. What is more goes into another one.
pub const SHARE_ENTRIES_MAX: usize = 1_024;

const ENTRY_LEN: usize = 16 + 8 + 8 + 8 + 1;

/// What is told; what the numbers of entries mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum What {
    /// No entries: `free` is what the sender has free.
    Free = 1,
    /// `number`: requests/s wanted above the reservation.
    Wants = 2,
    /// `number`: requests/s, to be taken whole or refused.
    Proposals = 3,
    /// The proposals taken.
    Accepted = 4,
    /// `real`: share of the sender's free resources that one request is; `number`, from heads: what is wanted.
    Shares = 5,
    /// `real`: requests/s that the sender will have at least.
    AtLeast = 6,
    /// `real`: requests/s that the sender will have at most.
    AtMost = 7,
    /// `number`: requests/s that the sender keeps for the group.
    Promise = 8,
    /// From heads: `number` is the interval of the grant in use, if there is one; others are over.
    Using = 9,
    /// To heads: the sender's word for these groups is void.
    Recall = 10,
    /// From heads: the group uses more of its reservation than was assumed.
    Returned = 11,
    /// From heads: `number` is what the group uses of its reservation without saying so; the rest may be lent.
    Assumed = 12,
    /// To heads: the sender keeps `number` of the group's reservation free.
    Kept = 13,
}

impl What {
    fn of(byte: u8) -> Option<Self> {
        use What::{
            Accepted, Assumed, AtLeast, AtMost, Free, Kept, Promise, Proposals, Recall, Returned, Shares,
            Using, Wants,
        };
        let all = [
            Free, Wants, Proposals, Accepted, Shares, AtLeast, AtMost, Promise, Using, Recall, Returned,
            Assumed, Kept,
        ];
        all.into_iter().find(|what| *what as u8 == byte)
    }

    /// Whether `real` has a meaning.
    fn is_real(self) -> bool {
        matches!(self, What::Shares | What::AtLeast | What::AtMost)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareEntry {
    pub group_id: GroupId,
    pub epoch: Epoch,
    /// Not negative; may be infinite.
    pub real: f64,
    pub number: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    pub interval: u64,
    pub what: What,
    /// CPU, network, storage IO, in thousandths of tokens each second.
    pub free: [u64; 3],
    pub entries: Vec<ShareEntry>,
}

impl Share {
    pub fn to_bytes(&self) -> Bytes {
        assert!(
            self.entries.len() <= SHARE_ENTRIES_MAX,
            "more goes into another frame"
        );
        let mut out = BytesMut::new();
        encode_frame(&mut out, kind::SHARE, 0, None, 0, |out| {
            out.put_u8(SHARE_VERSION);
            out.put_u8(self.what as u8);
            out.put_u16_le(0);
            out.put_u64_le(self.interval);
            self.free.iter().for_each(|amount| out.put_u64_le(*amount));
            out.put_u32_le(self.entries.len() as u32);
            for entry in &self.entries {
                out.put_slice(entry.group_id.0.as_bytes());
                out.put_u64_le(entry.epoch);
                out.put_u64_le(entry.real.to_bits());
                out.put_u8(u8::from(entry.number.is_some()));
                out.put_u64_le(entry.number.unwrap_or(0));
            }
        });
        out.freeze()
    }

    /// `None`: of a version, or about something, that this server does not know.
    pub fn decode(frame: &Frame) -> Result<Option<Share>, WireError> {
        frame.expect_no_payload("SHARE")?;
        let mut r = Reader::new(&frame.head, "SHARE");
        let (version, what) = (r.u8()?, r.u8()?);
        let Some(what) = What::of(what).filter(|_| version == SHARE_VERSION) else {
            return Ok(None);
        };
        r.u16()?;
        let interval = r.u64()?;
        let free = [r.u64()?, r.u64()?, r.u64()?];
        let count = r.count(ENTRY_LEN)?;
        if count > SHARE_ENTRIES_MAX {
            return Err(WireError::Malformed { what: "SHARE" });
        }
        let entries = (0..count)
            .map(|_| decode_entry(&mut r, what))
            .collect::<Result<_, WireError>>()?;
        Ok(Some(Share {
            interval,
            what,
            free,
            entries,
        }))
    }
}

fn decode_entry(r: &mut Reader<'_>, what: What) -> Result<ShareEntry, WireError> {
    let group_id = GroupId(Uuid::from_bytes(r.id16()?));
    let epoch = r.u64()?;
    let real = f64::from_bits(r.u64()?);
    let (has_number, number) = (r.u8()? != 0, r.u64()?);
    // Neither NaN nor negative: nobody who computes with it has to ask again.
    if what.is_real() && (real.is_nan() || real < 0.0) {
        return Err(WireError::Malformed { what: "SHARE" });
    }
    Ok(ShareEntry {
        group_id,
        epoch,
        real: if what.is_real() { real } else { 0.0 },
        number: has_number.then_some(number),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode_frame;

    fn share(what: What, real: f64, number: Option<u64>) -> Share {
        let entry = |n: u128| ShareEntry {
            group_id: GroupId(Uuid::from_u128(n)),
            epoch: 3,
            real,
            number,
        };
        Share {
            interval: 77,
            what,
            free: [1, u64::MAX, 3],
            entries: (1..=SHARE_ENTRIES_MAX as u128).map(entry).collect(),
        }
    }

    fn frame(bytes: &[u8]) -> Frame {
        let mut stream = BytesMut::from(bytes);
        decode_frame(&mut stream, u32::MAX).unwrap().unwrap()
    }

    #[test]
    fn a_full_frame_comes_back() {
        for (what, real, number) in [
            (What::Shares, f64::INFINITY, Some(u64::MAX)),
            (What::AtMost, 0.25, None),
            (What::Using, 0.0, Some(76)),
            (What::Returned, 0.0, None),
        ] {
            let sent = share(what, real, number);
            assert_eq!(Share::decode(&frame(&sent.to_bytes())), Ok(Some(sent)));
        }
    }

    #[test]
    fn what_no_sum_can_use_is_refused() {
        for real in [f64::NAN, -1.0, f64::NEG_INFINITY] {
            let sent = share(What::AtLeast, real, None);
            assert!(Share::decode(&frame(&sent.to_bytes())).is_err(), "{real}");
        }
    }

    #[test]
    fn what_a_later_version_says_is_ignored_and_what_is_cut_is_refused() {
        let mut later = frame(&share(What::Recall, 0.0, None).to_bytes());
        let mut head = BytesMut::from(&later.head[..]);
        head[1] = 200;
        later.head = head.clone().freeze();
        assert_eq!(Share::decode(&later), Ok(None));
        head[0] = SHARE_VERSION + 1;
        head[1] = What::Recall as u8;
        later.head = head.freeze();
        assert_eq!(Share::decode(&later), Ok(None));
        let mut cut = frame(&share(What::Recall, 0.0, None).to_bytes());
        cut.head.truncate(500);
        assert!(Share::decode(&cut).is_err());
    }
}
