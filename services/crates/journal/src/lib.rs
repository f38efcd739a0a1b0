//! The per-server log on disk: group commit, scan, segments.
