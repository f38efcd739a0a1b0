//! The reference client. Taken over by engineer `driver` on branch `driver` (with loadtest/driver): engineer
//! `store` leaves both alone and stops after telemetry.
