//! Memory for records until they are written.

use quorate_journal::record::PAGE_BYTES;
use quorate_journal::{Image, Lsn};

use crate::format::LogLocation;

/// Most memory kept for reuse: the first touch of new memory is expensive.
const SPARE_BYTES_MAX: usize = 16 << 20;

/// Bytes to write to a group's last file.
pub(crate) struct Pending {
    pub file: u32,
    pub image: Image,
    pub moved: Vec<(Lsn, LogLocation)>,
}

impl Pending {
    pub fn new(file: u32, image: Image) -> Self {
        Self {
            file,
            image,
            moved: Vec::new(),
        }
    }

    pub fn bytes(&self) -> usize {
        (self.image.end() - self.image.written()) as usize
    }
}

/// Memory of written records, for reuse.
#[derive(Default)]
pub(crate) struct Spare {
    images: Vec<Image>,
    bytes: usize,
}

impl Spare {
    /// An image that begins at `position`. The page's bytes before that are read when the image is written.
    pub fn image(&mut self, position: u32) -> Image {
        let page = [0; PAGE_BYTES as usize];
        let before = &page[..(u64::from(position) % PAGE_BYTES) as usize];
        let Some(mut image) = self.images.pop() else {
            return Image::new(u64::from(position), before);
        };
        self.bytes -= image.capacity();
        image.go_to(u64::from(position), before);
        image
    }

    pub fn put_back(&mut self, image: Image) {
        if self.bytes + image.capacity() <= SPARE_BYTES_MAX {
            self.bytes += image.capacity();
            self.images.push(image);
        }
    }
}
