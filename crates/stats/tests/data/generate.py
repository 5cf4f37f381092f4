"""Computes the values that the tests check against, with NumPy and SciPy, and writes them beside this file.

    python -m venv VENV && VENV/bin/pip install numpy scipy && VENV/bin/python generate.py

The inputs are drawn once with a fixed seed and written with the answers, so that the tests need no Python.
"""

import json
import pathlib

import numpy as np
import scipy
from scipy import stats

HERE = pathlib.Path(__file__).parent
RNG = np.random.default_rng(20260411)


def clean(x):
    """A float that JSON can carry."""
    return None if x is None or not np.isfinite(x) else float(x)


def distributions():
    ps = [1e-6, 0.001, 0.025, 0.05, 0.2, 0.4, 0.6, 0.95, 0.975, 0.999]
    dfs = [0.7, 1, 2, 2.5, 4, 9.3, 30, 300, 9999, 1e4, 1e6, 1e9]
    return {
        "t_quantile": [[p, df, stats.t.ppf(p, df)] for df in dfs for p in ps],
        "t_cdf": [[t, df, stats.t.cdf(t, df)] for df in dfs for t in [-5.0, -2.0, -0.3, 0.0, 0.1, 1.0, 3.0]],
        "normal_quantile": [[p, stats.norm.ppf(p)] for p in ps],
        "normal_cdf": [[z, stats.norm.cdf(z)] for z in [-8.0, -3.0, -1.0, 0.0, 0.5, 2.0, 6.0]],
        "chi_squared_quantile": [
            [p, df, stats.chi2.ppf(p, df)] for df in [1, 2, 3, 4, 9.5, 30, 300] for p in ps
        ],
    }


def order_interval(values, p, level):
    """The bounds by SciPy's binomial distribution, found by looking at every rank."""
    n, q, miss = len(values), p / 100, (1 - level) / 2
    ranks = np.arange(1, n + 1)
    low = ranks[stats.binom.cdf(ranks - 1, n, q) <= miss]
    high = ranks[stats.binom.sf(ranks - 1, n, q) <= miss]
    ordered = np.sort(values)
    return [
        clean(ordered[low[-1] - 1]) if len(low) else None,
        clean(ordered[high[0] - 1]) if len(high) else None,
    ]


def samples():
    out = []
    for n, draw in [
        (1, RNG.normal), (2, RNG.normal), (5, RNG.normal), (6, RNG.normal), (19, RNG.normal), (20, RNG.lognormal),
        (100, RNG.lognormal), (367, RNG.normal), (368, RNG.normal), (500, RNG.standard_cauchy),
    ]:
        values = np.round(100 + draw(size=n), 6)
        ps = [1, 5, 25, 50, 75, 90, 95, 99, 99.9]
        out.append({
            "values": values.tolist(),
            "mean": float(np.mean(values)),
            "sd": clean(np.std(values, ddof=1)) if n > 1 else None,
            "percentiles": [
                [p, float(np.percentile(values, p, method="linear")), *order_interval(values, p, 0.95)] for p in ps
            ],
        })
    return out


def order_ranks():
    """Ranks for samples too large to write out: [n, p, level, low, high], by SciPy's binomial quantile."""
    out = []
    for n in [1_000, 30_000, 1_000_000, 50_000_000]:
        for p in [1, 50, 90, 99, 99.9]:
            for level in [0.9, 0.95, 0.99]:
                miss = (1 - level) / 2
                low = int(stats.binom.ppf(miss, n, p / 100)) + 1
                while low >= 1 and stats.binom.cdf(low - 1, n, p / 100) > miss:
                    low -= 1
                high = int(stats.binom.isf(miss, n, p / 100)) + 1
                while high <= n and stats.binom.sf(high - 1, n, p / 100) > miss:
                    high += 1
                out.append([n, p, level, low or None, high if high <= n else None])
    return out


def write(name, data):
    path = HERE / f"{name}.json"
    path.write_text(json.dumps({"scipy": scipy.__version__, "numpy": np.__version__, "cases": data}, indent=0) + "\n")


if __name__ == "__main__":
    write("distributions", distributions())
    write("samples", samples())
    write("order_ranks", order_ranks())
