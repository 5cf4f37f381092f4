use shakedown_stats::{chi_squared_quantile, normal_cdf, normal_quantile, t_cdf, t_quantile};

use crate::data::{cases, close, numbers};

const DATA: &str = include_str!("../data/distributions.json");

#[test]
fn agree_with_scipy() {
    let data = cases(DATA);
    let table = |name: &str| -> Vec<Vec<f64>> {
        let rows: Vec<Vec<f64>> = data[name].as_array().unwrap().iter().map(numbers).collect();
        assert!(rows.len() >= 7, "{name}");
        rows
    };
    for row in table("t_quantile") {
        close(
            t_quantile(row[0], row[1]),
            row[2],
            1e-10,
            &format!("t quantile {row:?}"),
        );
    }
    for row in table("t_cdf") {
        close(t_cdf(row[0], row[1]), row[2], 1e-10, &format!("t cdf {row:?}"));
    }
    for row in table("normal_quantile") {
        close(
            normal_quantile(row[0]),
            row[1],
            1e-10,
            &format!("normal quantile {row:?}"),
        );
    }
    for row in table("normal_cdf") {
        close(normal_cdf(row[0]), row[1], 1e-10, &format!("normal cdf {row:?}"));
    }
    for row in table("chi_squared_quantile") {
        close(
            chi_squared_quantile(row[0], row[1]),
            row[2],
            1e-8,
            &format!("chi squared quantile {row:?}"),
        );
    }
}
