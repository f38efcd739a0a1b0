//! The shared library: loaded once, and kept until the process ends.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use libloading::Library as Loaded;

use crate::abi;
use crate::error::FabricError;

/// The name that packages of all vendors give it.
const NAME: &str = "libfabric.so.1";

type GetInfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const abi::Info,
    *mut *mut abi::Info,
) -> c_int;
type OpenFabric = unsafe extern "C" fn(*mut abi::FabricAttr, *mut *mut abi::Fabric, *mut c_void) -> c_int;

/// libfabric of this machine.
pub struct Library {
    pub(crate) get_info: GetInfo,
    pub(crate) free_info: unsafe extern "C" fn(*mut abi::Info),
    pub(crate) dup_info: unsafe extern "C" fn(*const abi::Info) -> *mut abi::Info,
    pub(crate) open_fabric: OpenFabric,
    describe: unsafe extern "C" fn(c_int) -> *const c_char,
    version: u32,
    _loaded: Loaded,
}

static LIBRARY: OnceLock<Result<Library, FabricError>> = OnceLock::new();

impl Library {
    /// Loads it, if that was not done.
    pub fn get() -> Result<&'static Self, FabricError> {
        LIBRARY.get_or_init(Self::load).as_ref().map_err(Clone::clone)
    }

    fn load() -> Result<Self, FabricError> {
        let missing = |error: libloading::Error| FabricError::NoLibrary(error.to_string());
        // SAFETY: the library's initialisers are those of the installed package. The symbols have the types of its headers.
        unsafe {
            let loaded = Loaded::new(NAME).map_err(missing)?;
            let version = *loaded
                .get::<unsafe extern "C" fn() -> u32>(b"fi_version\0")
                .map_err(missing)?;
            let library = Self {
                get_info: *loaded.get(b"fi_getinfo\0").map_err(missing)?,
                free_info: *loaded.get(b"fi_freeinfo\0").map_err(missing)?,
                dup_info: *loaded.get(b"fi_dupinfo\0").map_err(missing)?,
                open_fabric: *loaded.get(b"fi_fabric\0").map_err(missing)?,
                describe: *loaded.get(b"fi_strerror\0").map_err(missing)?,
                version: version(),
                _loaded: loaded,
            };
            let [major, minor] = library.version();
            if library.version < abi::VERSION {
                return Err(FabricError::NoLibrary(format!(
                    "version {major}.{minor} is older than 1.17"
                )));
            }
            Ok(library)
        }
    }

    /// Its major and minor version.
    pub fn version(&self) -> [u32; 2] {
        [self.version >> 16, self.version & 0xffff]
    }

    /// The version of the interface to ask for. Providers behave as it says.
    pub(crate) fn interface(&self) -> u32 {
        // EFA gives one-sided writes by default from 1.18 on.
        self.version.min(1 << 16 | 18)
    }

    /// Words for an error number, positive or negative.
    pub(crate) fn words(&self, error: i64) -> String {
        let number = i32::try_from(error.unsigned_abs()).unwrap_or(0);
        // SAFETY: the library answers with a text of its own for each number.
        let text = unsafe { CStr::from_ptr((self.describe)(number)) };
        format!("{} ({number})", text.to_string_lossy())
    }

    /// The result of a call that answers 0, or a negative error number.
    pub(crate) fn check(&self, call: &'static str, result: c_int) -> Result<(), FabricError> {
        match result {
            0 => Ok(()),
            error => Err(FabricError::Failed {
                call,
                reason: self.words(i64::from(error)),
            }),
        }
    }
}
