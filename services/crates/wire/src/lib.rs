//! Frames between clients, servers and peers: pure encoding and decoding.
