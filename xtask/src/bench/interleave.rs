//! Sides of a comparison, measured in turn so that a slow drift of the machine hits all of them alike.

use anyhow::{Context, Result};

use super::figures::{median, spread};

/// One side: a name, and how to take its figures once.
pub(super) struct Side<'a> {
    /// What the table calls it.
    pub(super) name: &'static str,
    /// Takes the figures once, in the order of the table's columns.
    pub(super) take: Box<dyn FnMut() -> Result<Vec<f64>> + 'a>,
}

/// The figures of all sides: per side, per figure, one value per round (the mean of the two takes of a round).
pub(super) struct Table {
    columns: Vec<&'static str>,
    rows: Vec<(&'static str, Vec<Vec<f64>>)>,
}

/// Takes every side twice a round, the second time in reverse order (ABBA): inside a round a linear drift cancels.
/// One round before, not counted, warms the caches.
pub(super) fn interleave(rounds: usize, columns: &[&'static str], mut sides: Vec<Side>) -> Result<Table> {
    let mut table = Table {
        columns: columns.to_vec(),
        rows: sides
            .iter()
            .map(|side| (side.name, vec![Vec::new(); columns.len()]))
            .collect(),
    };
    for round in 0..=rounds {
        let there = 0..sides.len();
        let mut sums = vec![vec![0.0; columns.len()]; sides.len()];
        for index in there.clone().chain(there.rev()) {
            let side = &mut sides[index];
            let figures =
                (side.take)().with_context(|| format!("failed to take the figures of {}", side.name))?;
            for (sum, figure) in sums[index].iter_mut().zip(figures) {
                *sum += figure / 2.0;
            }
        }
        if round == 0 {
            continue;
        }
        for (row, sums) in table.rows.iter_mut().zip(sums) {
            for (values, sum) in row.1.iter_mut().zip(sums) {
                values.push(sum);
            }
        }
    }
    Ok(table)
}

impl Table {
    /// The median of figure `column` of side `row` over the rounds.
    pub(super) fn median(&self, row: usize, column: usize) -> f64 {
        median(&self.rows[row].1[column])
    }

    /// The median over the rounds of side `row` / the first side.
    pub(super) fn ratio(&self, row: usize, column: usize) -> f64 {
        let ratios: Vec<f64> = self.rows[row].1[column]
            .iter()
            .zip(&self.rows[0].1[column])
            .map(|(other, first)| other / first)
            .collect();
        median(&ratios)
    }

    /// Prints one line a side: median, smallest and largest over the rounds, and the ratio to the first side.
    pub(super) fn print(&self) {
        for (index, column) in self.columns.iter().enumerate() {
            println!("  {column}");
            for (row, (name, values)) in self.rows.iter().enumerate() {
                let ratio = if row == 0 {
                    String::new()
                } else {
                    format!("   x {:.2}", self.ratio(row, index))
                };
                println!("    {name:12} {}{ratio}", spread(&values[index]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_linear_drift_cancels_inside_each_round() {
        let clock = RefCell::new(0.0);
        let order = RefCell::new(String::new());
        let side = |name: &'static str, true_value: f64| Side {
            name,
            take: Box::new({
                let (clock, order) = (&clock, &order);
                move || {
                    *clock.borrow_mut() += 1.0;
                    order.borrow_mut().push_str(name);
                    Ok(vec![true_value + *clock.borrow()])
                }
            }),
        };
        let table = interleave(2, &["ms"], vec![side("a", 100.0), side("b", 100.0)]).unwrap();
        assert_eq!(*order.borrow(), "abbaabbaabba");
        assert!((table.ratio(1, 0) - 1.0).abs() < 1e-12);
        assert!((table.median(0, 0) - table.median(1, 0)).abs() < 1e-12);
    }

    #[test]
    fn a_side_that_fails_says_which() {
        let broken = Side {
            name: "peer",
            take: Box::new(|| anyhow::bail!("no such program")),
        };
        let error = format!("{:#}", interleave(1, &["ms"], vec![broken]).err().unwrap());
        assert!(
            error.contains("peer") && error.contains("no such program"),
            "{error}"
        );
    }
}
