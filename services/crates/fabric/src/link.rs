//! One endpoint for one peer, with its completion queue and registered memory.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::rc::Rc;

use crate::abi;
use crate::domain::Domain;
use crate::error::FabricError;
use crate::memory::Memory;

/// Bytes of the longest name of an endpoint.
const NAME_BYTES_MAX: usize = 256;
/// Completions that are read at once.
const ENTRIES: usize = 16;

/// Keys of memory, where the library leaves them to us: never the same twice in a process.
static NEXT_KEY: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);

/// A peer needs it to write here. It is told over a connection that proves who is at its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The endpoint's name, as its provider has it.
    pub name: Vec<u8>,
    /// The address of the ring's first byte, by the provider's count.
    pub base: u64,
    pub key: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// A write of this side has ended: its staged bytes may change. It says nothing of the other side.
    Ended { number: u64 },
    /// A write of the other side has landed.
    Landed { immediate: u32 },
}

/// The provider's memory for an operation, and our number for it.
#[repr(C)]
struct Operation {
    context: abi::Context,
    number: u64,
}

struct Peer {
    address: abi::Address,
    base: u64,
    key: u64,
}

pub struct Link {
    domain: Rc<Domain>,
    ep: *mut abi::Ep,
    cq: *mut abi::Cq,
    av: *mut abi::Av,
    ring_region: *mut abi::Mr,
    staging_region: *mut abi::Mr,
    ring: Memory,
    staging: Memory,
    operations: Box<[Operation]>,
    free: Vec<usize>,
    peer: Option<Peer>,
}

impl Link {
    /// An endpoint for one peer, which may write into `ring_bytes`. It stages its own writes in as many, `writes_max` at a time.
    pub fn open(domain: &Rc<Domain>, ring_bytes: usize, writes_max: usize) -> Result<Self, FabricError> {
        let idle = || Operation {
            context: abi::Context {
                internal: [null_mut(); 8],
            },
            number: 0,
        };
        // From here on its drop closes what is open.
        let mut link = Self {
            domain: domain.clone(),
            ep: null_mut(),
            cq: null_mut(),
            av: null_mut(),
            ring_region: null_mut(),
            staging_region: null_mut(),
            ring: Memory::new(ring_bytes),
            staging: Memory::new(ring_bytes),
            operations: (0..writes_max).map(|_| idle()).collect(),
            free: (0..writes_max).collect(),
            peer: None,
        };
        link.open_endpoint(writes_max)?;
        link.ring_region = link.register(&link.ring, abi::REMOTE_WRITE)?;
        link.staging_region = link.register(&link.staging, abi::WRITE)?;
        Ok(link)
    }

    fn open_endpoint(&mut self, writes_max: usize) -> Result<(), FabricError> {
        let (library, domain) = (self.domain.library, self.domain.domain);
        let mut av = abi::AvAttr {
            kind: abi::AV_TABLE,
            rx_ctx_bits: 0,
            count: 1,
            ep_per_node: 0,
            name: null_mut(),
            map_addr: null_mut(),
            flags: 0,
        };
        let mut cq = abi::CqAttr {
            // Writes of both sides, twice over: an overrun cannot be mended.
            size: 4 * writes_max,
            flags: 0,
            format: abi::CQ_FORMAT_DATA,
            wait_obj: abi::WAIT_NONE,
            signaling_vector: 0,
            wait_cond: 0,
            wait_set: null_mut(),
        };
        // SAFETY: the domain is open; attributes and out-pointers are valid during the calls.
        unsafe {
            let ops = (*domain).ops;
            let done = ((*ops).av_open)(domain, &raw mut av, &raw mut self.av, null_mut());
            library.check("fi_av_open", done)?;
            let done = ((*ops).cq_open)(domain, &raw mut cq, &raw mut self.cq, null_mut());
            library.check("fi_cq_open", done)?;
            let done = ((*ops).endpoint)(domain, self.domain.info, &raw mut self.ep, null_mut());
            library.check("fi_endpoint", done)?;
            let fid = &raw mut (*self.ep).fid;
            let calls = (*fid).ops;
            let done = ((*calls).bind)(fid, &raw mut (*self.av).fid, 0);
            library.check("fi_ep_bind", done)?;
            let done = ((*calls).bind)(fid, &raw mut (*self.cq).fid, abi::TRANSMIT | abi::RECV);
            library.check("fi_ep_bind", done)?;
            library.check("fi_enable", ((*calls).control)(fid, abi::ENABLE, null_mut()))
        }
    }

    fn register(&self, memory: &Memory, access: u64) -> Result<*mut abi::Mr, FabricError> {
        let (library, domain) = (self.domain.library, self.domain.domain);
        let wanted_key = NEXT_KEY.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut region = null_mut();
        // SAFETY: the memory outlives its region: drop closes the region first.
        unsafe {
            let fid = &raw mut (*domain).fid;
            let (start, bytes) = (memory.start().cast::<c_void>(), memory.len());
            let register = (*(*domain).mr).reg;
            let done = register(
                fid,
                start,
                bytes,
                access,
                0,
                wanted_key,
                0,
                &raw mut region,
                null_mut(),
            );
            library.check("fi_mr_reg", done)?;
            if self.domain.has_mode(abi::MR_ENDPOINT) {
                let of_region = &raw mut (*region).fid;
                let done = ((*(*of_region).ops).bind)(of_region, &raw mut (*self.ep).fid, 0);
                library.check("fi_mr_bind", done)?;
                let done = ((*(*of_region).ops).control)(of_region, abi::ENABLE, null_mut());
                library.check("fi_mr_enable", done)?;
            }
        }
        Ok(region)
    }

    /// For the peer.
    pub fn offer(&self) -> Result<Offer, FabricError> {
        let mut name = vec![0; NAME_BYTES_MAX];
        let mut length = name.len();
        // SAFETY: the endpoint is enabled; the buffer has the length that is told.
        let (done, key) = unsafe {
            let getname = (*(*self.ep).cm).getname;
            let done = getname(&raw mut (*self.ep).fid, name.as_mut_ptr().cast(), &raw mut length);
            (done, (*self.ring_region).key)
        };
        self.domain.library.check("fi_getname", done)?;
        name.truncate(length);
        let is_virtual = self.domain.has_mode(abi::MR_VIRT_ADDR);
        let base = if is_virtual { self.ring.start() as u64 } else { 0 };
        Ok(Offer { name, base, key })
    }

    /// The peer to write to. Call it once. Neither side may write before both have called it: shared memory loses writes of
    /// endpoints that it does not know.
    pub fn connect(&mut self, offer: &Offer) -> Result<(), FabricError> {
        assert!(self.peer.is_none(), "a link has one peer");
        let mut padded = offer.name.clone();
        // Providers read fixed lengths.
        padded.resize(NAME_BYTES_MAX, 0);
        let mut address = 0;
        // SAFETY: the buffer is longer than any name.
        let inserted = unsafe {
            let insert = (*(*self.av).ops).insert;
            insert(
                self.av,
                padded.as_ptr().cast(),
                1,
                &raw mut address,
                0,
                null_mut(),
            )
        };
        if inserted != 1 {
            let reason = match inserted {
                0 => "it is no address".to_string(),
                error => self.domain.library.words(i64::from(error)),
            };
            return Err(FabricError::Failed {
                call: "fi_av_insert",
                reason,
            });
        }
        self.peer = Some(Peer {
            address,
            base: offer.base,
            key: offer.key,
        });
        Ok(())
    }

    /// The memory into which the peer writes.
    pub fn ring(&self) -> &[u8] {
        self.ring.bytes()
    }

    /// The memory from which this side writes. Bytes of a write do not change before its end.
    pub fn staging(&mut self) -> &mut [u8] {
        self.staging.bytes_mut()
    }

    /// Begins the write of staged bytes to the same place of the peer's ring.
    pub fn write(
        &mut self,
        offset: usize,
        bytes: usize,
        immediate: u32,
        number: u64,
    ) -> Result<(), FabricError> {
        assert!(
            offset + bytes <= self.staging.len(),
            "bytes beyond the staging memory"
        );
        let peer = self.peer.as_ref().expect("a peer is connected");
        let Some(at) = self.free.pop() else {
            return Err(FabricError::Again);
        };
        self.operations[at].number = number;
        // SAFETY: staged bytes and the operation live as long as the endpoint, which drop closes first.
        let done = unsafe {
            let start = self.staging.start().add(offset).cast::<c_void>();
            let context = (&raw mut self.operations[at]).cast::<c_void>();
            let descriptor = (*self.staging_region).descriptor;
            let writedata = (*(*self.ep).rma).writedata;
            let to = peer.base + offset as u64;
            writedata(
                self.ep,
                start,
                bytes,
                descriptor,
                u64::from(immediate),
                peer.address,
                to,
                peer.key,
                context,
            )
        };
        if done == 0 {
            return Ok(());
        }
        self.free.push(at);
        if done == -abi::EAGAIN {
            return Err(FabricError::Again);
        }
        Err(FabricError::Failed {
            call: "fi_writedata",
            reason: self.domain.library.words(done as i64),
        })
    }

    /// Writes that have not ended.
    pub fn under_way(&self) -> usize {
        self.operations.len() - self.free.len()
    }

    /// Lets the provider work, and gives what has completed. An error ends the link: what is under way is lost, or has landed.
    pub fn poll(&mut self, mut take: impl FnMut(Completion)) -> Result<(), FabricError> {
        // Zeroed memory would cost more than the look itself.
        let mut entries = [const { MaybeUninit::<abi::CqEntry>::uninit() }; ENTRIES];
        loop {
            // SAFETY: the queue has entries of this format, and the array room for so many.
            let read = unsafe {
                let read = (*(*self.cq).ops).read;
                read(self.cq, entries.as_mut_ptr().cast(), ENTRIES)
            };
            if read == -abi::EAGAIN {
                return Ok(());
            }
            if read < 0 {
                return Err(self.error_of(read));
            }
            for entry in &entries[..read as usize] {
                // SAFETY: the call has filled so many entries in.
                take(self.completion(unsafe { entry.assume_init_ref() }));
            }
            if (read as usize) < ENTRIES {
                return Ok(());
            }
        }
    }

    fn completion(&mut self, entry: &abi::CqEntry) -> Completion {
        if entry.flags & abi::REMOTE_CQ_DATA != 0 {
            return Completion::Landed {
                immediate: entry.data as u32,
            };
        }
        let bytes = entry.context as usize - self.operations.as_ptr() as usize;
        let at = bytes / size_of::<Operation>();
        assert!(
            at < self.operations.len(),
            "a completion of this endpoint's writes"
        );
        self.free.push(at);
        Completion::Ended {
            number: self.operations[at].number,
        }
    }

    fn error_of(&self, read: isize) -> FabricError {
        let library = self.domain.library;
        if read != -abi::EAVAIL {
            return FabricError::Failed {
                call: "fi_cq_read",
                reason: library.words(read as i64),
            };
        }
        // SAFETY: zero is a value of each field. The library fills it in.
        let error = unsafe {
            let mut entry: abi::CqErrEntry = std::mem::zeroed();
            let readerr = (*(*self.cq).ops).readerr;
            readerr(self.cq, &raw mut entry, 0);
            entry.error
        };
        FabricError::Failed {
            call: "a write",
            reason: library.words(i64::from(error)),
        }
    }
}

impl Drop for Link {
    /// The peer's writes are shut out first: its key is worth nothing from then on.
    fn drop(&mut self) {
        // SAFETY: each is closed once, and before the memory that it uses is freed.
        unsafe {
            for region in [self.ring_region, self.staging_region] {
                if !region.is_null() {
                    let _closed = ((*(*region).fid.ops).close)(&raw mut (*region).fid) == 0;
                }
            }
            if !self.ep.is_null() {
                let _closed = ((*(*self.ep).fid.ops).close)(&raw mut (*self.ep).fid) == 0;
            }
            if !self.cq.is_null() {
                let _closed = ((*(*self.cq).fid.ops).close)(&raw mut (*self.cq).fid) == 0;
            }
            if !self.av.is_null() {
                let _closed = ((*(*self.av).fid.ops).close)(&raw mut (*self.av).fid) == 0;
            }
        }
    }
}
