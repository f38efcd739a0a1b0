//! Chain replication in a ring: the protocol core, pure.
