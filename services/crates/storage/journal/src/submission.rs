//! A record on its way into the journal.

use bytes::Bytes;

use crate::record::{Location, Lsn};

/// One record to append.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    /// Opaque to the journal; 0 is its own.
    pub kind: u8,
    /// Copied; at most 65 535 bytes.
    pub head: &'a [u8],
    /// Long payloads are not copied before they are laid out for the device.
    pub payload: &'a Bytes,
    /// CRC-32 (IEEE) of the payload, if it was checked already: saves reading a long payload for it.
    pub payload_crc: Option<u32>,
    /// Comes back in [`crate::Event::Durable`]; must not decrease.
    pub tag: u64,
    /// May use the reserve when the disk is full: for the few records without which space cannot be freed.
    pub reserved: bool,
}

/// Number and location of an accepted record. The record is durable once `Event::Durable` says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submitted {
    pub lsn: Lsn,
    pub location: Location,
}
