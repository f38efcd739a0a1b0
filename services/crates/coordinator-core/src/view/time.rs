//! Times as the API shows them.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

pub fn rfc3339(unix_ms: u64) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(unix_ms) * 1_000_000);
    time.ok()
        .and_then(|time| time.format(&Rfc3339).ok())
        .unwrap_or_else(|| "9999-12-31T23:59:59Z".into())
}
