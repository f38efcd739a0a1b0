//! Token buckets and queues at the head, pure.
