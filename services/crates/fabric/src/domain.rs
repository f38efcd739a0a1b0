//! A provider's way to the network, for the endpoints of one thread.

use std::ffi::CString;
use std::fmt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::rc::Rc;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::abi;
use crate::error::FabricError;
use crate::library::Library;

/// Providers of one-sided writes, by the names that operators use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Memory shared by processes of one machine.
    Shm,
    /// Sockets: it works everywhere, and is for tests.
    Tcp,
    /// InfiniBand and RoCE.
    Verbs,
    /// AWS.
    Efa,
}

impl Provider {
    pub const ALL: [Provider; 4] = [Provider::Shm, Provider::Tcp, Provider::Verbs, Provider::Efa];

    pub fn name(self) -> &'static str {
        match self {
            Provider::Shm => "shm",
            Provider::Tcp => "tcp",
            Provider::Verbs => "verbs",
            Provider::Efa => "efa",
        }
    }

    /// As libfabric has it: connected endpoints become reliable datagrams by the utility provider rxm.
    fn stack(self) -> &'static str {
        match self {
            Provider::Shm => "shm",
            Provider::Tcp => "tcp;ofi_rxm",
            Provider::Verbs => "verbs;ofi_rxm",
            Provider::Efa => "efa",
        }
    }
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|provider| provider.name() == name);
        found.ok_or_else(|| format!("{name:?} is no provider: there are shm, tcp, verbs and efa"))
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The folder of shared memory, and the beginning of our names there: the process's number follows.
const SHARED_MEMORY: &str = "/dev/shm";
const SHARED_PREFIX: &str = "quorate-";
const SHARED_AGE: Duration = Duration::from_secs(600);

static DOMAINS: AtomicU64 = AtomicU64::new(0);

/// An open fabric and domain. Not for other threads than the one that made it.
pub struct Domain {
    pub(crate) library: &'static Library,
    pub(crate) info: *mut abi::Info,
    fabric: *mut abi::Fabric,
    pub(crate) domain: *mut abi::Domain,
    provider: Provider,
}

impl Domain {
    /// `host`: the address of this machine from which the others are reached; providers without addresses ignore it.
    pub fn open(provider: Provider, host: &str) -> Result<Rc<Self>, FabricError> {
        let library = Library::get()?;
        if provider == Provider::Shm {
            sweep(Path::new(SHARED_MEMORY), SHARED_AGE);
        }
        let info = find(library, provider, host)?;
        // From here on its drop closes what is open.
        let mut opened = Self {
            library,
            info,
            fabric: null_mut(),
            domain: null_mut(),
            provider,
        };
        // SAFETY: the info is the library's own, and lives as long as `opened`. Out-pointers are valid.
        unsafe {
            let done = (library.open_fabric)((*info).fabric_attr, &raw mut opened.fabric, null_mut());
            library.check("fi_fabric", done)?;
            let ops = (*opened.fabric).ops;
            let done = ((*ops).domain)(opened.fabric, info, &raw mut opened.domain, null_mut());
            library.check("fi_domain", done)?;
        }
        Ok(Rc::new(opened))
    }

    pub fn provider(&self) -> Provider {
        self.provider
    }

    pub(crate) fn has_mode(&self, mode: std::ffi::c_int) -> bool {
        // SAFETY: the library filled the info in.
        unsafe { (*(*self.info).domain_attr).mr_mode & mode != 0 }
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: links hold the domain, so no endpoint of it is open. Each is closed once.
        unsafe {
            if !self.domain.is_null() {
                let _closed = ((*(*self.domain).fid.ops).close)(&raw mut (*self.domain).fid) == 0;
            }
            if !self.fabric.is_null() {
                let _closed = ((*(*self.fabric).fid.ops).close)(&raw mut (*self.fabric).fid) == 0;
            }
            (self.library.free_info)(self.info);
        }
    }
}

/// A name for shared memory. Processes of other containers may have the same number, and see the same memory.
fn shared_name() -> String {
    let (process, domain) = (std::process::id(), DOMAINS.fetch_add(1, Ordering::Relaxed));
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now_ns = since_1970.map_or(0, |since| since.as_nanos());
    format!("{SHARED_PREFIX}{process}-{domain}-{now_ns:x}")
}

/// Removes what killed processes have left. A process of another container does not show here, so young files stay: links
/// have long opened the others.
fn sweep(folder: &Path, age: Duration) {
    for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = file.file_name();
        let owner = name.to_str().and_then(owner_of);
        let is_gone = owner.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists());
        let made = file.metadata().and_then(|metadata| metadata.modified());
        let is_old = made.is_ok_and(|made| made.elapsed().is_ok_and(|elapsed| elapsed >= age));
        if is_gone && is_old {
            let _removed = std::fs::remove_file(file.path()).is_ok();
        }
    }
}

/// The process that made a file of shared memory, if it is one of ours.
fn owner_of(name: &str) -> Option<u32> {
    name.strip_prefix(SHARED_PREFIX)?.split('-').next()?.parse().ok()
}

/// The provider's offer on this machine, to the wishes below.
fn find(library: &Library, provider: Provider, host: &str) -> Result<*mut abi::Info, FabricError> {
    let unavailable = |reason: String| FabricError::NoProvider {
        provider: provider.name(),
        reason,
    };
    let node = match provider {
        // Endpoints of several threads of a process would else have one name.
        Provider::Shm => shared_name(),
        _ => host.to_string(),
    };
    let node = CString::new(node).map_err(|_| unavailable("the host has a zero byte".into()))?;
    let stack = CString::new(provider.stack()).expect("no zero byte");
    let mut found = null_mut();
    // SAFETY: the hints are allocated by the library, with all structures that are reached; it frees them, and the copied
    // name with them.
    unsafe {
        let hints = (library.dup_info)(null());
        if hints.is_null() {
            return Err(unavailable("no memory".into()));
        }
        (*hints).caps = abi::RMA | abi::MSG | abi::WRITE | abi::REMOTE_WRITE;
        (*hints).mode = abi::CONTEXT | abi::CONTEXT2;
        (*(*hints).ep_attr).kind = abi::EP_RDM;
        let domain = (*hints).domain_attr;
        (*domain).mr_mode =
            abi::MR_LOCAL | abi::MR_VIRT_ADDR | abi::MR_ALLOCATED | abi::MR_PROV_KEY | abi::MR_ENDPOINT;
        (*domain).threading = abi::THREAD_DOMAIN;
        (*domain).av_type = abi::AV_TABLE;
        (*(*hints).fabric_attr).prov_name = libc::strdup(stack.as_ptr());
        let version = library.interface();
        let done = (library.get_info)(version, node.as_ptr(), null(), abi::SOURCE, hints, &raw mut found);
        (library.free_info)(hints);
        if done != 0 {
            return Err(unavailable(library.words(i64::from(done))));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_dead_processes_are_swept_and_no_others() {
        let folder = std::env::temp_dir().join(format!("sweep-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let own = format!("{SHARED_PREFIX}{}-0:0:0", std::process::id());
        // No process has the greatest number.
        let dead = format!("{SHARED_PREFIX}{}-0:0:0", u32::MAX);
        for name in [own.as_str(), &dead, "quorate-x", "PostgreSQL.1"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        sweep(&folder, Duration::from_secs(3_600));
        assert!(folder.join(&dead).exists(), "it is young");
        sweep(&folder, Duration::ZERO);
        let is_there = |name: &str| folder.join(name).exists();
        assert!(is_there(&own) && !is_there(&dead) && is_there("quorate-x") && is_there("PostgreSQL.1"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
