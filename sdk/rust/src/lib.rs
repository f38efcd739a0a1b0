//! The reference client.
