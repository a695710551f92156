//! The machine and the command of a run, and tables of figures.

use std::fmt::Display;

/// Prints the machine and the command that was run.
pub fn print_machine(command: &str) {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    println!(
        "machine  {}, {cores} cores, Linux {}",
        cpu_model(),
        kernel.trim()
    );
    println!("command  {command}");
}

fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let model = value("model name").unwrap_or_else(|| "unknown processor".to_owned());
    match (value("cpu family"), value("model\t")) {
        (Some(family), Some(number)) => format!("{model} (family {family}, model {number})"),
        _ => model,
    }
}

/// A table of texts: the first column to the left, the others to the right.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads.
    pub fn new(heads: &[&str]) -> Table {
        Table {
            rows: vec![heads.iter().map(|head| (*head).to_owned()).collect()],
        }
    }

    /// Adds a row.
    pub fn add(&mut self, cells: &[&dyn Display]) {
        self.rows
            .push(cells.iter().map(|cell| cell.to_string()).collect());
    }

    /// Prints the table.
    pub fn print(&self) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let padded = if column == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("  {cell:>width$}")
                };
                line.push_str(&padded);
            }
            println!("{}", line.trim_end());
        }
    }
}

/// The middle one of some figures; of an even number the mean of the two in the middle.
pub fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = figures.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length.is_multiple_of(2) => (sorted[middle - 1] + sorted[middle]) / 2.0,
        _ => sorted[middle],
    }
}

/// The figures below which so many hundredths of some figures are.
pub fn quantiles(figures: &[f64], hundredths: [usize; 3]) -> [f64; 3] {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    hundredths.map(|part| {
        sorted
            .get(sorted.len() * part / 100)
            .or(sorted.last())
            .copied()
            .unwrap_or(f64::NAN)
    })
}
