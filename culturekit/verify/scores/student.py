"""Student's t, from the integral that defines it: nothing here is taken from a library of statistics."""

import math
from functools import cache

__all__ = ["beta_share", "share_below", "t_quantile"]

STEPS = 300


def beta_share(a: float, b: float, x: float) -> float:
    """Give the share of the beta distribution (a, b) that lies below x, by Lentz's continued fraction."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )  # fmt: skip
    fraction, c, d = 1.0, 1.0, 0.0
    for step in range(STEPS):
        half = step // 2
        if step == 0:
            term = 1.0
        elif step % 2 == 0:
            term = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        else:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        d = 1 / (1 + term * d or 1e-300)
        c = 1 + term / c or 1e-300
        fraction *= c * d
        if abs(1 - c * d) < 1e-16:
            break
    return front * (fraction - 1) / a


def share_below(t: float, freedom: float) -> float:
    """Give the share of Student's t that lies below a point."""
    if math.isinf(t):
        return float(t > 0)
    tail = beta_share(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return 1 - tail if t > 0 else tail


@cache
def t_quantile(freedom: float, confidence: float) -> float:
    """Give the point between whose negative and itself so much of Student's t lies: Newton's steps, or by halving."""
    outside = (1 - confidence) / 2
    low, high = 0.0, 1.0
    while share_below(-high, freedom) > outside:
        high *= 2
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    at = (low + high) / 2
    for _ in range(200):
        more = share_below(-at, freedom) - outside
        low, high = (at, high) if more > 0 else (low, at)
        density = math.exp(scale - (freedom + 1) / 2 * math.log1p(at * at / freedom))
        then = at + more / density if density > 0 else low
        then = then if low < then < high else (low + high) / 2
        if abs(then - at) <= 1e-14 * at:
            break
        at = then
    return at
