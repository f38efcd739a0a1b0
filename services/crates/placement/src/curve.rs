//! Points that were measured by size, and values between them.

use serde::{Deserialize, Serialize};

/// A measured size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Point {
    pub size_bytes: u32,
    pub cpu_ns: u32,
    /// The busiest thread's part, which bounds one group. All of `cpu_ns` when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    busiest_ns: Option<u32>,
}

impl Point {
    pub fn busiest_ns(&self) -> u32 {
        self.busiest_ns.unwrap_or(self.cpu_ns)
    }
}

/// The bound of one append: a second of CPU.
pub(crate) const CPU_NS_MAX: u32 = 1_000_000_000;

pub(crate) fn validate_curve(field: &str, points: &[Point]) -> Result<(), ProfileError> {
    if points.len() < 2 {
        return Err(error(field, "needs at least two points"));
    }
    for (i, point) in points.iter().enumerate() {
        if !(1..=BYTES_MAX).contains(&point.size_bytes) {
            return Err(error(
                format!("{field}[{i}].size_bytes"),
                "must be 1 to 1073741824",
            ));
        }
        if !(1..=CPU_NS_MAX).contains(&point.cpu_ns) {
            return Err(error(format!("{field}[{i}].cpu_ns"), "must be 1 to 1000000000"));
        }
        if i > 0 && point.size_bytes <= points[i - 1].size_bytes {
            return Err(error(
                format!("{field}[{i}].size_bytes"),
                "must be above the point before",
            ));
        }
        if i > 0 && point.cpu_ns < points[i - 1].cpu_ns {
            return Err(error(
                format!("{field}[{i}].cpu_ns"),
                "must not be below the point before",
            ));
        }
        let busiest = point.busiest_ns();
        if busiest == 0 || busiest > point.cpu_ns {
            return Err(error(
                format!("{field}[{i}].busiest_ns"),
                "must be above 0, and at most cpu_ns",
            ));
        }
        if i > 0 && busiest < points[i - 1].busiest_ns() {
            return Err(error(
                format!("{field}[{i}].busiest_ns"),
                "must not be below the point before",
            ));
        }
    }
    Ok(())
}

/// The value of a curve for an append of this size, in thousandths, interpolated between points. The last segment extends
/// beyond the last point, and the first below the first point when `extend_down`.
pub(crate) fn milli_at<P>(
    points: &[P],
    size_bytes: u32,
    extend_down: bool,
    point: fn(&P) -> (u32, u32),
) -> u64 {
    let (first_size, first) = point(&points[0]);
    if size_bytes <= first_size && !extend_down {
        return u64::from(first) * 1_000;
    }
    let segment = points.windows(2).find(|pair| size_bytes <= point(&pair[1]).0);
    let pair = segment.unwrap_or(&points[points.len() - 2..]);
    let ((low_size, low), (high_size, high)) = (point(&pair[0]), point(&pair[1]));
    let rise_milli = (i64::from(high) - i64::from(low)) * 1_000;
    let run = i64::from(high_size - low_size);
    let beyond = i64::from(size_bytes) - i64::from(low_size);
    let milli = i128::from(low) * 1_000 + i128::from(rise_milli) * i128::from(beyond) / i128::from(run);
    u64::try_from(milli.clamp(1, MILLI_MAX)).expect("it is clamped to 64 bits")
}

/// The profile file cannot be used: the field at fault, and the reason.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("cost profile: {field}: {problem}")]
pub struct ProfileError {
    pub field: String,
    pub problem: String,
}

pub(crate) fn error(field: impl Into<String>, problem: impl Into<String>) -> ProfileError {
    ProfileError {
        field: field.into(),
        problem: problem.into(),
    }
}

// A bound beyond any request, so that products of accepted numbers do not overflow.
pub(crate) const BYTES_MAX: u32 = 1 << 30;
/// The bound beyond the largest measured size: ten seconds.
const MILLI_MAX: i128 = 10_000_000_000_000;
