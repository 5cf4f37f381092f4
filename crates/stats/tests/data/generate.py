"""Computes the values that the tests check against, with NumPy, SciPy and statsmodels, and writes them beside this file.

    python -m venv VENV && VENV/bin/pip install numpy scipy statsmodels inference-doctor==0.4.1 && VENV/bin/python generate.py

The inputs are drawn once with a fixed seed and written with the answers, so that the tests need no Python.
"""

import json
import pathlib

import numpy as np
import scipy
from scipy import integrate, linalg, stats
from inference_doctor.stats import welch_log_ratio_interval
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_ind

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


def draw(n, sd, centre=0.0):
    return np.round(centre + sd * RNG.standard_normal(n), 8)


def two_sides():
    """Pooled t, or Welch's where its rule holds; the interval, the p-value and whether two one-sided tests say "same"."""
    out = []
    sizes = [(2, 2), (3, 3), (4, 4), (2, 5), (1, 3), (4, 1), (6, 5), (4, 4), (8, 5), (5, 5), (3, 3)]
    spreads = [(1, 1), (1, 2), (1, 2), (1, 1), (1, 1), (1, 1), (2, 1), (0.1, 2), (3, 0.2), (0.2, 0.2), (0.1, 2)]
    for (n_a, n_b), (sd_a, sd_b) in zip(sizes, spreads):
        for shift in [0.0, 0.004, 0.035]:
            a, b = draw(n_a, sd_a / 100, 4.4), draw(n_b, sd_b / 100, 4.4 + shift)
            unequal = False
            if min(n_a, n_b) >= 4:
                low, high = sorted([np.std(a, ddof=1), np.std(b, ddof=1)])
                unequal = bool(high > 3 * low)
            if min(n_a, n_b) == 1:
                # SciPy has no test with a single value; the formula is the same.
                df = n_a + n_b - 2
                rest = sum((x - x.mean()) @ (x - x.mean()) for x in (a, b))
                se = np.sqrt(rest / df * (1 / n_a + 1 / n_b))
                d = b.mean() - a.mean()
                p = 2 * stats.t.sf(abs(d) / se, df)
                ci = (d - stats.t.ppf(0.975, df) * se, d + stats.t.ppf(0.975, df) * se)
                same = None
            else:
                test = stats.ttest_ind(b, a, equal_var=not unequal)
                p, df, ci = test.pvalue, test.df, tuple(test.confidence_interval(0.95))
                m = np.log1p(0.02)
                same = bool(ttost_ind(b, a, -m, m, usevar="unequal" if unequal else "pooled")[0] < 0.05)
            out.append({
                "a": a.tolist(), "b": b.tolist(), "welch": unequal, "df": float(df), "p": float(p),
                "interval": [float(ci[0]), float(ci[1])], "same": same,
            })
    return out


def one_sample():
    out = []
    for n in [2, 3, 5, 12]:
        values = draw(n, 0.01, 0.012)
        test = stats.ttest_1samp(values, 0.0)
        ci = test.confidence_interval(0.95)
        out.append({"values": values.tolist(), "p": float(test.pvalue), "interval": [float(ci.low), float(ci.high)]})
    return out


def shrunk(series, rho, weight):
    telling = sum(max(0, len(x) - 5) for x in series)
    length = np.mean([len(x) for x in series])
    if telling == 0:
        return rho
    top = sum(float((x - x.mean())[:-1] @ (x - x.mean())[1:]) for x in series)
    seen = rho
    if length > 5:
        seen = np.clip((top / sum(len(x) * np.var(x) for x in series) + 1 / length) / (1 - 4 / length), -0.9, 0.9)
    return float(np.clip((telling * seen + weight * rho) / (telling + weight), 0, 0.8))


def serial():
    """Generalised by matrices: with correlation matrix R the mean has variance 1'R1/n^2 and the residual squares the
    expectation trace((I - J/n) R)."""
    out = []
    for n_a, n_b in [(2, 2), (3, 3), (5, 5), (10, 10), (20, 7), (30, 30)]:
        a, b = draw(n_a, 0.01, 4.4), draw(n_b, 0.01, 4.42)
        rho = shrunk([a, b], 0.35, 16)
        expected, variance, rest = 0.0, 0.0, 0.0
        for x in (a, b):
            n = len(x)
            r = linalg.toeplitz(rho ** np.arange(n))
            expected += np.trace((np.eye(n) - np.ones((n, n)) / n) @ r)
            variance += r.sum() / n**2
            rest += float((x - x.mean()) @ (x - x.mean()))
        df = max(1.0, (n_a + n_b - 2) * (1 - rho**2) / (1 + rho**2))
        out.append({
            "a": a.tolist(), "b": b.tolist(), "difference": float(b.mean() - a.mean()),
            "se": float(np.sqrt(rest / expected * variance)), "df": df,
        })
    return out


def power():
    """Power of the two-sided t test by the noncentral t, and of two one-sided tests by integrating over the spread."""
    out = []
    for blocks in [False, True]:
        for n in [2, 3, 4, 5, 8, 19, 69]:
            for d, sd in [(0.035, 0.01), (0.0, 0.01), (0.01, 0.005), (0.0, 0.003), (0.035, np.sqrt(1e-4 + 1e-4 / 5))]:
                df = n - 1 if blocks else 2 * n - 2
                se = sd * np.sqrt((1 if blocks else 2) / n)
                t = stats.t.ppf(0.975, df)
                found = stats.nct.sf(t, df, d / se) + stats.nct.cdf(-t, df, d / se)
                if not np.isfinite(found):
                    continue
                m, t1 = np.log1p(0.01), stats.t.ppf(0.95, df)

                def inside(u):
                    x = m - t1 * se * u
                    if x <= 0:
                        return 0.0
                    return (stats.norm.cdf((x - d) / se) - stats.norm.cdf((-x - d) / se)) * stats.chi.pdf(
                        u * np.sqrt(df), df
                    ) * np.sqrt(df)

                same, _ = integrate.quad(inside, 0, m / (t1 * se), limit=500, points=None, epsabs=1e-12)
                out.append([blocks, n, d, float(sd), float(found), float(same)])
    return out


def notes():
    out = []
    for n in [4, 5, 9, 30]:
        values = draw(n, 0.01, 4.4) + 0.003 * np.arange(n) * (n % 2)
        line = stats.linregress(np.arange(n), values)
        out.append({
            "values": values.tolist(),
            "mad": float(stats.median_abs_deviation(values, scale="normal")),
            "total": float(line.slope * (n - 1)),
            "p": float(line.pvalue),
        })
    return out


def holm():
    out = []
    for n in [1, 2, 3, 7]:
        p = np.round(RNG.uniform(size=n) ** 3, 6)
        out.append([p.tolist(), multipletests(p, method="holm")[1].tolist()])
    out.append([[0.01, 0.01, 0.04, 1.0], multipletests([0.01, 0.01, 0.04, 1.0], method="holm")[1].tolist()])
    return out


def sd_intervals():
    out = []
    for df in [1, 4, 8.5, 38]:
        for level in [0.8, 0.95]:
            tail = (1 - level) / 2
            out.append([
                0.013, df, level, 0.013 * np.sqrt(df / stats.chi2.ppf(1 - tail, df)),
                0.013 * np.sqrt(df / stats.chi2.ppf(tail, df)),
            ])
    return out


def beside():
    """The interval of the gate that the calibration is printed beside, by that gate itself."""
    out = []
    for n_a, n_b in [(2, 2), (3, 3), (5, 4), (10, 10)]:
        a, b = np.exp(draw(n_a, 0.04, 4.5)), np.exp(draw(n_b, 0.02, 4.4))
        interval = welch_log_ratio_interval(a.tolist(), b.tolist(), 0.9)
        out.append({"a": a.tolist(), "b": b.tolist(), "low": interval.low, "high": interval.high})
    return out


def write(name, data):
    path = HERE / f"{name}.json"
    path.write_text(json.dumps({"scipy": scipy.__version__, "numpy": np.__version__, "cases": data}, indent=0) + "\n")


if __name__ == "__main__":
    write("distributions", distributions())
    write("samples", samples())
    write("order_ranks", order_ranks())
    write("two_sides", two_sides())
    write("one_sample", one_sample())
    write("serial", serial())
    write("power", power())
    write("notes", notes())
    write("holm", holm())
    write("sd_intervals", sd_intervals())
    write("beside", beside())
