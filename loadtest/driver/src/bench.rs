//! The standard measurement: three sizes, both durabilities, and one append at a time.

use std::path::Path;
use std::time::Duration;

use quorate_client::Handle;
use quorate_client::writer::Batching;
use quorate_figures::Figures;

use crate::measure::{Measured, Workload, measure};
use crate::text;

/// What the in-memory group must reach with 64-byte entries.
const GOAL_PER_S: f64 = 100_000.0;

struct Cell {
    name: &'static str,
    size: u32,
    outstanding: u32,
}

const CELLS: [Cell; 4] = [
    Cell {
        name: "64b",
        size: 64,
        outstanding: 1_024,
    },
    Cell {
        name: "1k",
        size: 1 << 10,
        outstanding: 1_024,
    },
    Cell {
        name: "16k",
        size: 16 << 10,
        outstanding: 128,
    },
    Cell {
        name: "64b",
        size: 64,
        outstanding: 1,
    },
];

pub struct Plan<'a> {
    pub in_memory: Option<Handle>,
    pub persistent: Option<Handle>,
    pub server_pids: Vec<u32>,
    pub window: Duration,
    pub warmup: Duration,
    /// Each cell is measured so often, in turn with the others; its median counts.
    pub repeats: u32,
    pub figures_folder: &'a Path,
    pub command: String,
}

struct Row<'a> {
    durability: &'static str,
    cell: &'a Cell,
    handle: &'a Handle,
    measured: Vec<Measured>,
}

/// Measures, prints the table, writes the figures. `false`: a goal was missed, or appends failed.
pub fn bench(plan: &Plan<'_>) -> Result<bool, String> {
    let groups = [("mem", &plan.in_memory), ("sync", &plan.persistent)];
    let mut rows: Vec<Row<'_>> = groups
        .iter()
        .filter_map(|(durability, handle)| Some((*durability, handle.as_ref()?)))
        .flat_map(|(durability, handle)| {
            CELLS.iter().map(move |cell| Row {
                durability,
                cell,
                handle,
                measured: Vec::new(),
            })
        })
        .collect();
    let total = rows.len() * plan.repeats as usize;
    let mut done = 0;
    for _ in 0..plan.repeats {
        for row in &mut rows {
            done += 1;
            let title = format!(
                "{done} of {total}, {} {}",
                text::size(row.cell.size),
                spoken(row.durability)
            );
            let measured = measure(
                std::slice::from_ref(row.handle),
                &workload(plan, row.cell),
                &title,
            )?;
            row.measured.push(measured);
        }
    }
    let rows: Vec<(&Row<'_>, &Measured)> = rows.iter().map(|row| (row, median(&row.measured))).collect();
    text::print(&table(&rows));
    write_figures(plan, &rows)
}

fn workload(plan: &Plan<'_>, cell: &Cell) -> Workload {
    Workload {
        size: cell.size,
        outstanding: cell.outstanding,
        rate_per_s: None,
        connections: 1,
        batching: Batching::default(),
        spin: Duration::ZERO,
        warmup: plan.warmup,
        window: plan.window,
        timeout: Duration::from_secs(10),
        server_pids: plan.server_pids.clone(),
    }
}

/// The measurement with the median rate.
fn median(measured: &[Measured]) -> &Measured {
    let mut sorted: Vec<&Measured> = measured.iter().collect();
    sorted.sort_by(|a, b| a.acked_per_s.total_cmp(&b.acked_per_s));
    sorted[sorted.len() / 2]
}

fn spoken(durability: &str) -> &'static str {
    if durability == "mem" {
        "in-memory"
    } else {
        "persistent"
    }
}

fn table(rows: &[(&Row<'_>, &Measured)]) -> String {
    let heads = [
        "durability",
        "size",
        "outstanding",
        "appends/s",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "servers",
        "client",
    ];
    let mut lines: Vec<Vec<String>> = vec![heads.map(str::to_string).to_vec()];
    for (row, measured) in rows {
        let servers = measured.servers_cpu_s_per_m.map_or("–".to_string(), text::cpu);
        lines.push(vec![
            spoken(row.durability).to_string(),
            text::size(row.cell.size),
            row.cell.outstanding.to_string(),
            text::grouped(measured.acked_per_s as u64),
            text::grouped(measured.p50_us),
            text::grouped(measured.p99_us),
            text::grouped(measured.p999_us),
            servers,
            text::cpu(measured.client_cpu_s_per_m),
        ]);
    }
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| line[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut printed: Vec<String> = Vec::new();
    for line in &lines {
        let cells = line
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| {
                // Words to the left, figures to the right.
                if column == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
        printed.push(cells.collect::<Vec<_>>().join("   "));
    }
    printed.push("servers, client: processor seconds for a million appends".to_string());
    printed.join("\n")
}

fn write_figures(plan: &Plan<'_>, rows: &[(&Row<'_>, &Measured)]) -> Result<bool, String> {
    let figures = Figures::new(plan.figures_folder, plan.command.clone());
    let mut is_good = true;
    for (row, measured) in rows {
        let prefix = format!("append_{}_{}", row.cell.name, row.durability);
        if row.cell.outstanding == 1 {
            let name = format!("{prefix}_out1_p50_us");
            is_good &= figures.write(&name, measured.p50_us as f64, "µs", None)?;
        } else {
            let is_canonical = row.cell.name == "64b" && row.durability == "mem";
            let goal = is_canonical.then_some(GOAL_PER_S);
            is_good &= figures.write(
                &format!("{prefix}_per_s"),
                measured.acked_per_s,
                "appends/s",
                goal,
            )?;
            for (what, value) in [("p50_us", measured.p50_us), ("p99_us", measured.p99_us)] {
                figures.write(&format!("{prefix}_{what}"), value as f64, "µs", None)?;
            }
            if let Some(cpu) = measured.servers_cpu_s_per_m {
                figures.write(
                    &format!("{prefix}_cpu_s_per_m"),
                    cpu,
                    "CPU s per million appends",
                    None,
                )?;
            }
        }
        for (what, counts) in [
            ("refused", &measured.refused),
            ("outcome unknown", &measured.unknown),
        ] {
            for (code, count) in counts {
                is_good = false;
                eprintln!("{prefix}: {what}: {} with {code}", text::grouped(*count));
            }
        }
        if let Some(cores) = measured.others_cores.filter(|cores| *cores > 0.1) {
            eprintln!(
                "{prefix}: other processes used {cores:.1} cores meanwhile; measure again on a quiet machine"
            );
        }
    }
    if !is_good {
        eprintln!(
            "not good: see above; the goal is {} appends/s of 64 B in memory",
            text::grouped(GOAL_PER_S as u64)
        );
    }
    Ok(is_good)
}
