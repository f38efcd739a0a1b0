//! The kernel's count of segments that it had to send again.

#![allow(unsafe_code)] // The standard library does not read TCP_INFO.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::AsRawFd;

/// Segments that this side of the connection has sent again since it is open.
pub fn retransmits(socket: &impl AsRawFd) -> io::Result<u32> {
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
        0 => Ok(info.tcpi_total_retrans),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::retransmits;

    #[test]
    fn a_connection_of_one_machine_sends_nothing_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(retransmits(&stream).unwrap(), 0);
        assert!(retransmits(&std::fs::File::open("/dev/null").unwrap()).is_err());
    }
}
