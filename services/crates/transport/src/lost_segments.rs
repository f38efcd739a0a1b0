//! The kernel's count of segments that were lost on their way.

#![allow(unsafe_code)] // The standard library does not read TCP_INFO.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::AsRawFd;

/// Segments that this side of the connection had to send again since it is open. Segments that the other side had got after all
/// (it says so, RFC 2883) do not count: where a machine is busy, answers are late, and the kernel sends again in vain.
pub fn lost_segments(socket: &impl AsRawFd) -> io::Result<u32> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut bytes = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes no more than `bytes` into `info`. Zero is a value of each field.
    let (read, info) = unsafe {
        let read = libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut bytes,
        );
        (read, info.assume_init())
    };
    match read {
        0 => Ok(info.tcpi_total_retrans.saturating_sub(info.tcpi_dsack_dups)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::lost_segments;

    #[test]
    fn a_connection_of_one_machine_loses_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(lost_segments(&stream).unwrap(), 0);
        assert!(lost_segments(&std::fs::File::open("/dev/null").unwrap()).is_err());
    }
}
