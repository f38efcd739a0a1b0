//! Counters, histograms, their way to Redis, traces and logs.
