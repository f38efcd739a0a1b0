//! Reads that groups have asked of a disk.

use quorate_group::{Generation, PageRead};
use quorate_types::{Epoch, Index, ServerId};
use quorate_wire::BatchHeader;

use crate::disk::Spot;

/// Something to be read, from where it lay when it was asked for.
#[derive(Debug)]
pub enum DiskRead {
    Load {
        generation: Generation,
        from_index: Index,
        spots: Vec<Spot>,
    },
    Page {
        read: PageRead,
        /// `None`: it was trimmed.
        spots: Vec<Option<Spot>>,
    },
    ForPeer {
        to: ServerId,
        epoch: Epoch,
        header: BatchHeader,
        spot: Option<Spot>,
    },
}
