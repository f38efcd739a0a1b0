//! Admission and placement, pure.
