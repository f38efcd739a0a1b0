//! SHARE: messages between servers about burst capacity (`docs/internals/chain.md`, "Sharing idle capacity").
//!
//! SHARE concerns no log: groups keep their reservations though any frame may be lost, late or not understood.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_types::cost::RESOURCES;
use quorate_types::limits::SHARE_AGGREGATES_MAX;
use quorate_types::{Epoch, GroupId};
use uuid::Uuid;

use crate::WireError;
use crate::cursor::Reader;
use crate::frame::{Frame, encode_frame};
use crate::peer::kind;

/// Version of this format. Servers name theirs in ALIVE, and send SHARE only to servers that named one. Frames of an
/// unknown version are ignored.
pub const SHARE_VERSION: u8 = 1;

/// Entries of one frame, so that its head fits 16 bits of length. More entries go into another frame.
pub const SHARE_ENTRIES_MAX: usize = 1_024;

const ENTRY_LEN: usize = 16 + 8 + 8 + 8 + 1;
const AGGREGATE_LEN: usize = 4 * 8;

/// The subject of a frame, which gives the numbers of its entries their meaning. 5 to 7 are not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum What {
    /// No entries: `free` is the sender's idle capacity.
    Free = 1,
    /// `number`: requests/s wanted above the reservation.
    Wants = 2,
    /// `number`: requests/s, to be taken whole or refused.
    Proposals = 3,
    /// The accepted proposals. `used_up`: as in [`What::Commitment`].
    Accepted = 4,
    /// A commitment. `number`: requests/s that the sender keeps for the group. `used_up`: the resource that its commitments
    /// use up, for people.
    Commitment = 8,
    /// From heads: `number` is the interval of the grant in use, if there is one; other grants are over.
    Using = 9,
    /// To heads: the sender's commitments for these groups are void.
    Recall = 10,
    /// From heads: the group uses more of its reservation than was assumed.
    Returned = 11,
    /// From heads: `number` is the part of its reservation that the group uses without announcing it; the rest may be
    /// granted.
    Assumed = 12,
    /// To heads: the sender keeps `number` of the group's reservation free.
    Kept = 13,
    /// `free`: the sender's idle capacity. `number`, for groups that it heads: requests/s wanted above the reservation.
    Has = 14,
    /// No entries: the sender's groups that the receiver does not host, as aggregates.
    Aggregates = 15,
}

impl What {
    fn of(byte: u8) -> Option<Self> {
        use What::{
            Accepted, Aggregates, Assumed, Commitment, Free, Has, Kept, Proposals, Recall, Returned, Using,
            Wants,
        };
        let all = [
            Free, Wants, Proposals, Accepted, Commitment, Using, Recall, Returned, Assumed, Kept, Has,
            Aggregates,
        ];
        all.into_iter().find(|what| *what as u8 == byte)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareEntry {
    pub group_id: GroupId,
    pub epoch: Epoch,
    pub number: Option<u64>,
    /// In the order of [`quorate_types::cost::RESOURCES`]; `None`: no resource, or none named.
    pub used_up: Option<usize>,
}

/// An aggregate of groups: the amounts that they take while their dominant share, the *level*, rises.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareAggregate {
    /// Amount of each resource at level 1, in thousandths of tokens each second: finite, not negative.
    pub per_level: [f64; 3],
    /// The level at which they stop: not negative, may be infinite.
    pub until_level: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    pub interval: u64,
    pub what: What,
    /// CPU, network, storage IO, in thousandths of tokens each second.
    pub free: [u64; 3],
    pub entries: Vec<ShareEntry>,
    /// In [`What::Aggregates`] only.
    pub aggregates: Vec<ShareAggregate>,
}

impl Share {
    pub fn to_bytes(&self) -> Bytes {
        assert!(
            self.entries.len() <= SHARE_ENTRIES_MAX,
            "more goes into another frame"
        );
        assert!(
            self.aggregates.len() <= SHARE_AGGREGATES_MAX
                && (self.aggregates.is_empty() || self.what == What::Aggregates),
            "{} aggregates",
            self.aggregates.len()
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
                out.put_u64_le(entry.used_up.map_or(0, |resource| resource as u64 + 1));
                out.put_u8(u8::from(entry.number.is_some()));
                out.put_u64_le(entry.number.unwrap_or(0));
            }
            if self.what == What::Aggregates {
                out.put_u32_le(self.aggregates.len() as u32);
                for aggregate in &self.aggregates {
                    aggregate
                        .per_level
                        .iter()
                        .for_each(|amount| out.put_u64_le(amount.to_bits()));
                    out.put_u64_le(aggregate.until_level.to_bits());
                }
            }
        });
        out.freeze()
    }

    /// `None`: this server does not know the version or the subject.
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
            .map(|_| decode_entry(&mut r))
            .collect::<Result<_, WireError>>()?;
        let aggregates = match what {
            What::Aggregates => decode_aggregates(&mut r)?,
            _ => Vec::new(),
        };
        Ok(Some(Share {
            interval,
            what,
            free,
            entries,
            aggregates,
        }))
    }
}

fn decode_entry(r: &mut Reader<'_>) -> Result<ShareEntry, WireError> {
    let group_id = GroupId(Uuid::from_bytes(r.id16()?));
    let epoch = r.u64()?;
    let used_up = r.u64()?;
    let (has_number, number) = (r.u8()? != 0, r.u64()?);
    Ok(ShareEntry {
        group_id,
        epoch,
        number: has_number.then_some(number),
        used_up: (0..RESOURCES.len()).find(|resource| used_up == *resource as u64 + 1),
    })
}

fn decode_aggregates(r: &mut Reader<'_>) -> Result<Vec<ShareAggregate>, WireError> {
    let count = r.count(AGGREGATE_LEN)?;
    if count > SHARE_AGGREGATES_MAX {
        return Err(WireError::Malformed { what: "SHARE" });
    }
    (0..count).map(|_| decode_aggregate(r)).collect()
}

fn decode_aggregate(r: &mut Reader<'_>) -> Result<ShareAggregate, WireError> {
    let mut real = || Ok::<f64, WireError>(f64::from_bits(r.u64()?));
    let (per_level, until_level) = ([real()?, real()?, real()?], real()?);
    // Later computations rely on it.
    let is_amount = |amount: &f64| amount.is_finite() && *amount >= 0.0;
    if !per_level.iter().all(is_amount) || until_level.is_nan() || until_level < 0.0 {
        return Err(WireError::Malformed { what: "SHARE" });
    }
    Ok(ShareAggregate {
        per_level,
        until_level,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode_frame;

    fn share(what: What, number: Option<u64>) -> Share {
        let entry = |n: u128| ShareEntry {
            group_id: GroupId(Uuid::from_u128(n)),
            epoch: 3,
            number,
            used_up: None,
        };
        Share {
            interval: 77,
            what,
            free: [1, u64::MAX, 3],
            entries: (1..=SHARE_ENTRIES_MAX as u128).map(entry).collect(),
            aggregates: Vec::new(),
        }
    }

    fn aggregates(per_level: f64, until_level: f64) -> Share {
        let aggregate = ShareAggregate {
            per_level: [per_level, 0.0, 7.5],
            until_level,
        };
        Share {
            entries: Vec::new(),
            aggregates: vec![aggregate; SHARE_AGGREGATES_MAX],
            ..share(What::Aggregates, None)
        }
    }

    fn frame(bytes: &[u8]) -> Frame {
        let mut stream = BytesMut::from(bytes);
        decode_frame(&mut stream, u32::MAX).unwrap().unwrap()
    }

    #[test]
    fn a_full_frame_comes_back() {
        let sent = [
            share(What::Has, Some(u64::MAX)),
            share(What::Using, Some(76)),
            share(What::Returned, None),
            aggregates(0.25, f64::INFINITY),
            aggregates(f64::MAX, 0.0),
        ];
        for sent in sent {
            assert_eq!(Share::decode(&frame(&sent.to_bytes())), Ok(Some(sent)));
        }
    }

    #[test]
    fn a_used_up_resource_survives_and_an_unknown_one_is_dropped() {
        let mut sent = share(What::Commitment, Some(12));
        for resource in [None, Some(0), Some(1), Some(2)] {
            sent.entries[0].used_up = resource;
            assert_eq!(Share::decode(&frame(&sent.to_bytes())), Ok(Some(sent.clone())));
        }
        sent.entries[0].used_up = Some(3);
        let decoded = Share::decode(&frame(&sent.to_bytes())).unwrap().unwrap();
        assert_eq!(decoded.entries[0].used_up, None);
    }

    #[test]
    fn what_no_sum_can_use_is_refused() {
        for real in [f64::NAN, -1.0, f64::NEG_INFINITY] {
            for sent in [aggregates(real, 1.0), aggregates(1.0, real)] {
                assert!(Share::decode(&frame(&sent.to_bytes())).is_err(), "{real}");
            }
        }
        assert!(Share::decode(&frame(&aggregates(f64::INFINITY, 1.0).to_bytes())).is_err());
    }

    #[test]
    fn a_retired_subject_is_ignored() {
        for what in 5..=7 {
            let mut old = frame(&share(What::Wants, None).to_bytes());
            let mut head = BytesMut::from(&old.head[..]);
            head[1] = what;
            old.head = head.freeze();
            assert_eq!(Share::decode(&old), Ok(None));
        }
    }

    #[test]
    fn what_a_later_version_says_is_ignored_and_what_is_cut_is_refused() {
        let mut later = frame(&share(What::Recall, None).to_bytes());
        let mut head = BytesMut::from(&later.head[..]);
        head[1] = 200;
        later.head = head.clone().freeze();
        assert_eq!(Share::decode(&later), Ok(None));
        head[0] = SHARE_VERSION + 1;
        head[1] = What::Recall as u8;
        later.head = head.freeze();
        assert_eq!(Share::decode(&later), Ok(None));
        let mut cut = frame(&share(What::Recall, None).to_bytes());
        cut.head.truncate(500);
        assert!(Share::decode(&cut).is_err());
    }
}
