//! The part of libfabric's C interface that is used: structures of version 1.17, which later versions only lengthen.
//!
//! Names and order are those of `rdma/fabric.h`, `fi_domain.h`, `fi_endpoint.h`, `fi_eq.h`, `fi_cm.h` and `fi_rma.h`. The
//! library allocates those structures to which versions have added fields; here they are only reached through pointers.

use std::ffi::{c_char, c_int, c_void};

pub type Address = u64;
type Unused = *const c_void;

pub const MSG: u64 = 1 << 1;
pub const RMA: u64 = 1 << 2;
pub const WRITE: u64 = 1 << 9;
pub const RECV: u64 = 1 << 10;
pub const TRANSMIT: u64 = 1 << 11;
pub const REMOTE_WRITE: u64 = 1 << 13;
pub const REMOTE_CQ_DATA: u64 = 1 << 17;
pub const CONTEXT2: u64 = 1 << 52;
pub const SOURCE: u64 = 1 << 57;
pub const CONTEXT: u64 = 1 << 59;

pub const MR_LOCAL: c_int = 1 << 2;
pub const MR_VIRT_ADDR: c_int = 1 << 4;
pub const MR_ALLOCATED: c_int = 1 << 5;
pub const MR_PROV_KEY: c_int = 1 << 6;
pub const MR_ENDPOINT: c_int = 1 << 9;

pub const EP_RDM: c_int = 3;
pub const THREAD_DOMAIN: c_int = 3;
pub const AV_TABLE: c_int = 2;
pub const CQ_FORMAT_DATA: c_int = 3;
pub const WAIT_NONE: c_int = 0;
/// `FI_ENABLE` of `fi_control`.
pub const ENABLE: c_int = 6;

pub const EAGAIN: isize = 11;
/// An entry of the error queue is there (`FI_EAVAIL`).
pub const EAVAIL: isize = 259;

/// `FI_VERSION(1, 17)`.
pub const VERSION: u32 = 1 << 16 | 17;

#[repr(C)]
pub struct Fid {
    pub class: usize,
    pub context: *mut c_void,
    pub ops: *const Ops,
}

#[repr(C)]
pub struct Ops {
    pub size: usize,
    pub close: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    pub control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct TxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub inject_size: usize,
    pub size: usize,
}

#[repr(C)]
pub struct EpAttr {
    pub kind: c_int,
}

#[repr(C)]
pub struct DomainAttr {
    pub domain: *mut c_void,
    pub name: *mut c_char,
    pub threading: c_int,
    pub control_progress: c_int,
    pub data_progress: c_int,
    pub resource_mgmt: c_int,
    pub av_type: c_int,
    pub mr_mode: c_int,
    pub mr_key_size: usize,
    pub cq_data_size: usize,
}

#[repr(C)]
pub struct FabricAttr {
    pub fabric: *mut c_void,
    pub name: *mut c_char,
    pub prov_name: *mut c_char,
    pub prov_version: u32,
    pub api_version: u32,
}

#[repr(C)]
pub struct Info {
    pub next: *mut Info,
    pub caps: u64,
    pub mode: u64,
    pub addr_format: u32,
    pub src_addrlen: usize,
    pub dest_addrlen: usize,
    pub src_addr: *mut c_void,
    pub dest_addr: *mut c_void,
    pub handle: *mut Fid,
    pub tx_attr: *mut TxAttr,
    pub rx_attr: *mut c_void,
    pub ep_attr: *mut EpAttr,
    pub domain_attr: *mut DomainAttr,
    pub fabric_attr: *mut FabricAttr,
}

#[repr(C)]
pub struct Fabric {
    pub fid: Fid,
    pub ops: *const FabricOps,
}

#[repr(C)]
pub struct FabricOps {
    pub size: usize,
    pub domain: unsafe extern "C" fn(*mut Fabric, *mut Info, *mut *mut Domain, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct Domain {
    pub fid: Fid,
    pub ops: *const DomainOps,
    pub mr: *const MrOps,
}

#[repr(C)]
pub struct DomainOps {
    pub size: usize,
    pub av_open: unsafe extern "C" fn(*mut Domain, *mut AvAttr, *mut *mut Av, *mut c_void) -> c_int,
    pub cq_open: unsafe extern "C" fn(*mut Domain, *mut CqAttr, *mut *mut Cq, *mut c_void) -> c_int,
    pub endpoint: unsafe extern "C" fn(*mut Domain, *mut Info, *mut *mut Ep, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct MrOps {
    pub size: usize,
    #[allow(clippy::type_complexity)] // the C interface's
    pub reg: unsafe extern "C" fn(
        *mut Fid,
        *const c_void,
        usize,
        u64,
        u64,
        u64,
        u64,
        *mut *mut Mr,
        *mut c_void,
    ) -> c_int,
}

#[repr(C)]
pub struct Mr {
    pub fid: Fid,
    pub descriptor: *mut c_void,
    pub key: u64,
}

#[repr(C)]
pub struct AvAttr {
    pub kind: c_int,
    pub rx_ctx_bits: c_int,
    pub count: usize,
    pub ep_per_node: usize,
    pub name: *const c_char,
    pub map_addr: *mut c_void,
    pub flags: u64,
}

#[repr(C)]
pub struct Av {
    pub fid: Fid,
    pub ops: *const AvOps,
}

#[repr(C)]
pub struct AvOps {
    pub size: usize,
    pub insert: unsafe extern "C" fn(*mut Av, *const c_void, usize, *mut Address, u64, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct CqAttr {
    pub size: usize,
    pub flags: u64,
    pub format: c_int,
    pub wait_obj: c_int,
    pub signaling_vector: c_int,
    pub wait_cond: c_int,
    pub wait_set: *mut c_void,
}

#[repr(C)]
pub struct Cq {
    pub fid: Fid,
    pub ops: *const CqOps,
}

#[repr(C)]
pub struct CqOps {
    pub size: usize,
    pub read: unsafe extern "C" fn(*mut Cq, *mut c_void, usize) -> isize,
    pub readfrom: Unused,
    pub readerr: unsafe extern "C" fn(*mut Cq, *mut CqErrEntry, u64) -> isize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CqEntry {
    pub context: *mut c_void,
    pub flags: u64,
    pub len: usize,
    pub buf: *mut c_void,
    pub data: u64,
}

#[repr(C)]
pub struct CqErrEntry {
    pub context: *mut c_void,
    pub flags: u64,
    pub len: usize,
    pub buf: *mut c_void,
    pub data: u64,
    pub tag: u64,
    pub olen: usize,
    pub error: c_int,
    pub provider_error: c_int,
    pub error_data: *mut c_void,
    pub error_data_size: usize,
}

#[repr(C)]
pub struct Ep {
    pub fid: Fid,
    pub ops: Unused,
    pub cm: *const CmOps,
    pub msg: Unused,
    pub rma: *const RmaOps,
}

#[repr(C)]
pub struct CmOps {
    pub size: usize,
    pub setname: Unused,
    pub getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
}

#[repr(C)]
pub struct RmaOps {
    pub size: usize,
    pub read: Unused,
    pub readv: Unused,
    pub readmsg: Unused,
    pub write: Unused,
    pub writev: Unused,
    pub writemsg: Unused,
    pub inject: Unused,
    #[allow(clippy::type_complexity)] // the C interface's
    pub writedata: unsafe extern "C" fn(
        *mut Ep,
        *const c_void,
        usize,
        *mut c_void,
        u64,
        Address,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
}

/// `struct fi_context2`: the provider's, as long as an operation lasts.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Context {
    pub internal: [*mut c_void; 8],
}
