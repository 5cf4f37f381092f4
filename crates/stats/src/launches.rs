//! The difference between two sides from the means of their launches: the launch is the unit.

use crate::Estimate;
use crate::estimate::{mean, sd, squares};

/// Launches a side from which on unequal spreads are believed.
const WELCH_MIN_LAUNCHES: usize = 4;
/// Ratio of standard deviations from which on they are called unequal.
const WELCH_MIN_RATIO: f64 = 3.0;

/// ln(B / A) from the mean log of each launch, B − A. Absent with no launch on a side or one on both: then nothing
/// tells how far two launches of one side lie apart.
///
/// The two-sample t with pooled variance (Student 1908; Welch 1938 on when it holds), for a restarted server is another
/// sample and trials of one launch share its luck. With at least four launches a side whose standard deviations differ by
/// more than a factor of 3, Welch's degrees of freedom (Welch 1947, Satterthwaite 1946): with fewer, the two
/// spreads themselves are guesses, and pooling them is the better one. One launch against several borrows the
/// spread of the several.
pub fn launches(a: &[f64], b: &[f64]) -> Option<Estimate> {
    let (n_a, n_b) = (a.len(), b.len());
    if n_a == 0 || n_b == 0 || n_a + n_b < 3 {
        return None;
    }
    let difference = mean(b) - mean(a);
    let (size_a, size_b) = (n_a as f64, n_b as f64);
    if let (Some(sd_a), Some(sd_b)) = (sd(a), sd(b))
        && n_a.min(n_b) >= WELCH_MIN_LAUNCHES
        && sd_a.max(sd_b) > WELCH_MIN_RATIO * sd_a.min(sd_b)
    {
        let (share_a, share_b) = (sd_a * sd_a / size_a, sd_b * sd_b / size_b);
        let sum = share_a + share_b;
        return Some(Estimate {
            difference,
            se: sum.sqrt(),
            df: sum * sum / (share_a * share_a / (size_a - 1.0) + share_b * share_b / (size_b - 1.0)),
        });
    }
    let df = size_a + size_b - 2.0;
    let variance = (squares(a) + squares(b)) / df;
    Some(Estimate {
        difference,
        se: (variance * (1.0 / size_a + 1.0 / size_b)).sqrt(),
        df,
    })
}
