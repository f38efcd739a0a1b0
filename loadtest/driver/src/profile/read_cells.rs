//! Reads of one size, from memory or from the disk: their part of a profile, and how well it predicts others.

use quorate_placement::Profile;
use quorate_types::cost::ReadBudget;
use quorate_types::{Durability, Sla};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::median;
use crate::reads::ReadResult;

/// A page from memory has all of its entries there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Memory,
    Disk,
}

/// Pages of one size, once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadCell {
    pub source: Source,
    pub size_bytes: u32,
    #[serde(flatten)]
    pub result: ReadResult,
}

impl ReadCell {
    /// CPU of the server for each entry, all threads and the busiest.
    fn used(&self) -> Result<(f64, f64), String> {
        let used = self.result.cpu_ns.zip(self.result.busiest_ns);
        used.ok_or_else(|| "reads were measured without the server's process".to_string())
    }

    fn is_alone(&self) -> bool {
        self.result.page_entries < 2.0
    }
}

/// `cpu.read` of a profile. `sharing`: the factor for servers that several groups share.
pub fn curves(cells: &[ReadCell], sharing: f64) -> Result<Value, String> {
    let page_ns = page_ns(cells)?;
    let memory = curve(cells, Source::Memory, sharing)?;
    let disk = curve(cells, Source::Disk, sharing)?;
    Ok(json!({"memory": memory, "disk": disk, "page_ns": (sharing * page_ns).ceil() as u32}))
}

fn curve(cells: &[ReadCell], source: Source, sharing: f64) -> Result<Value, String> {
    let full = || {
        cells
            .iter()
            .filter(|cell| cell.source == source && !cell.is_alone())
    };
    let mut sizes: Vec<u32> = full().map(|cell| cell.size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let (mut cpu, mut busiest, mut points) = (1, 1, Vec::new());
    for size in sizes {
        let of_size = full().filter(|cell| cell.size_bytes == size);
        let used = of_size.map(ReadCell::used).collect::<Result<Vec<_>, _>>()?;
        let (all, of_thread): (Vec<f64>, Vec<f64>) = used.into_iter().unzip();
        let ns = |each: Vec<f64>| (sharing * median(each)).ceil() as u32;
        // A larger size costs no less.
        cpu = cpu.max(ns(all));
        busiest = busiest.max(ns(of_thread));
        points.push(json!({"size_bytes": size, "cpu_ns": cpu, "busiest_ns": busiest.min(cpu)}));
    }
    Ok(Value::Array(points))
}

/// CPU of a page itself: from pages with one entry, and full ones of the same size. The median over sizes.
fn page_ns(cells: &[ReadCell]) -> Result<f64, String> {
    let memory = || cells.iter().filter(|cell| cell.source == Source::Memory);
    let mut each = Vec::new();
    for alone in memory().filter(|cell| cell.is_alone()) {
        for full in memory().filter(|cell| !cell.is_alone() && cell.size_bytes == alone.size_bytes) {
            let share = 1.0 / full.result.page_entries;
            each.push((alone.used()?.0 - full.used()?.0) / (1.0 - share));
        }
    }
    match each.is_empty() {
        true => Err(
            "no size was read in full pages and entry by entry: the cost of a page is unknown".to_string(),
        ),
        false => Ok(median(each).max(0.0)),
    }
}

/// The largest measured ÷ charged CPU, over all cells.
pub fn understated(profile: &Profile, cells: &[ReadCell]) -> Result<Option<f64>, String> {
    let ratios = cells.iter().map(|cell| {
        let charged = charged_ns(&budget(profile, cell), cell);
        Ok(cell.used()?.0 / charged)
    });
    let ratios = ratios.collect::<Result<Vec<f64>, String>>()?;
    Ok(ratios.into_iter().max_by(f64::total_cmp))
}

fn budget(profile: &Profile, cell: &ReadCell) -> ReadBudget {
    let sla = Sla {
        durability: match cell.source {
            Source::Memory => Durability::InMemory,
            Source::Disk => Durability::Persistent,
        },
        replication_degree: 1,
        min_replicas: None,
        request_size_bytes: cell.size_bytes,
        rate_per_s: 1,
        read_rate_per_s: 1,
        region: "local".to_string(),
        retention_bytes: 1 << 20,
        retention_age_s: None,
        latency: Default::default(),
    };
    *profile
        .budget(&sla)
        .reads
        .expect("a profile has the cost of reads")
}

/// CPU that is charged for each entry of the cell's pages.
fn charged_ns(budget: &ReadBudget, cell: &ReadCell) -> f64 {
    let entries = (cell.result.page_entries.round() as u64).max(1);
    let bytes = entries * u64::from(cell.size_bytes);
    let [cpu_ps, ..] = match cell.source {
        Source::Memory => budget.page_milli(entries, bytes),
        Source::Disk => budget.disk_page_milli(entries, bytes),
    };
    cpu_ps as f64 / 1_000.0 / entries as f64
}

#[cfg(test)]
fn cell(source: Source, size_bytes: u32, page_entries: f64, cpu_ns: f64) -> ReadCell {
    ReadCell {
        source,
        size_bytes,
        result: ReadResult {
            page_entries,
            pages_per_s: 1.0,
            entries_per_s: page_entries,
            bytes_per_s: 1.0,
            p50_us: 1,
            p99_us: 1,
            cpu_ns: Some(cpu_ns),
            busiest_ns: Some(cpu_ns / 2.0),
        },
    }
}

/// Cells of both sources, of two sizes.
#[cfg(test)]
pub fn some() -> Vec<ReadCell> {
    vec![
        cell(Source::Memory, 64, 16.0, 300.0),
        cell(Source::Memory, 64, 16.0, 320.0),
        cell(Source::Memory, 64, 16.0, 900.0),
        cell(Source::Memory, 1_024, 16.0, 310.0),
        cell(Source::Memory, 64, 1.0, 3_300.0),
        cell(Source::Disk, 64, 16.0, 600.0),
        cell(Source::Disk, 1_024, 16.0, 900.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_medians_that_never_fall_and_a_page_has_a_cost() {
        let found = curves(&some(), 1.5).expect("all is there");
        assert_eq!(
            found["memory"][0],
            json!({"size_bytes": 64, "cpu_ns": 480, "busiest_ns": 240})
        );
        assert_eq!(found["memory"][1]["cpu_ns"], 480, "a larger size costs no less");
        assert_eq!(found["disk"][1]["cpu_ns"], 1_350);
        // 3 300 less 320, less a sixteenth: 3 179, times the factor.
        let page_ns = found["page_ns"].as_u64().expect("it is a number");
        assert!((4_700..4_800).contains(&page_ns), "{page_ns}");
        assert!(curves(&some()[..4], 1.0).unwrap_err().contains("entry by entry"));
    }

    #[test]
    fn cells_are_compared_with_what_is_charged_for_them() {
        let profile = Profile::default_profile();
        let charged = charged_ns(&budget(&profile, &some()[0]), &some()[0]);
        let twice = [cell(Source::Memory, 64, 16.0, 2.0 * charged), some()[0].clone()];
        let found = understated(&profile, &twice)
            .expect("all is there")
            .expect("there are cells");
        assert!((found - 2.0).abs() < 1e-9, "{found}");
        let disk = cell(Source::Disk, 64, 16.0, 1.0);
        assert!(
            charged_ns(&budget(&profile, &disk), &disk) > charged,
            "the disk costs more"
        );
        assert_eq!(understated(&profile, &[]), Ok(None));
    }
}
