//! Figures as text for people.

use std::io::Write;

use crate::measured::Measured;

/// Prints to standard output; a closed pipe is no error.
pub fn print(text: &str) {
    let _gone = writeln!(std::io::stdout(), "{text}").is_err();
}

/// 1234567 as 1,234,567.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub fn size(bytes: u32) -> String {
    match bytes {
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// Processor seconds for a million appends, with two decimals, or one from 10 on.
pub fn cpu(value: f64) -> String {
    if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// One measurement, in a few lines.
pub fn describe(measured: &Measured) -> String {
    let mut lines = vec![format!(
        "{} appends/s of {} in {:.1} s ({} acknowledged)",
        grouped(measured.acked_per_s as u64),
        size(measured.size_bytes),
        measured.window_s,
        grouped(measured.acked)
    )];
    lines.push(format!(
        "latency  p50 {} µs   p99 {} µs   p99.9 {} µs   max {} µs",
        grouped(measured.p50_us),
        grouped(measured.p99_us),
        grouped(measured.p999_us),
        grouped(measured.max_us)
    ));
    let servers = measured
        .servers_cpu_s_per_m
        .map(|value| format!("servers {}   ", cpu(value)));
    lines.push(format!(
        "CPU s per million appends  {}client {}",
        servers.unwrap_or_default(),
        cpu(measured.client_cpu_s_per_m)
    ));
    if let Some(cores) = measured.others_cores.filter(|cores| *cores > 0.1) {
        lines.push(format!("note: other processes used {cores:.1} cores meanwhile"));
    }
    if measured.reconnects > 0 {
        lines.push(format!("note: {} reconnections", measured.reconnects));
    }
    for (what, counts) in [
        ("refused", &measured.refused),
        ("outcome unknown", &measured.unknown),
    ] {
        for (code, count) in counts {
            lines.push(format!("{what}: {} with {code}", grouped(*count)));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_easy_to_read() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!((size(64), size(16 << 10)), ("64 B".into(), "16 KB".into()));
        assert_eq!((cpu(2.345), cpu(12.34)), ("2.35".into(), "12.3".into()));
    }
}
