"""The effective number of items behind classes of labels, by whichever way is exact and fast for them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.diversity.labels import LabelClasses, combined

# Deflation: classes that the kernel cannot tell apart become one, and leave eigenvalues that are known at once.

NONE = -1  # In the place of a label that no other class has


@dataclass(frozen=True, slots=True)
class Deflated:
    """K/N, of which only a small part needs work.

    That part is diag(diagonal) + sum over levels l and labels g of weights[l]·u u', with u the roots of the masses
    of the classes that have label g, and 0 elsewhere.
    """

    mass: NDArray[np.float64]  # float64, (n_classes,): the share of the items in a class
    # float64, (n_classes,): what the labels that no other class has add to k(i, i) times a share
    diagonal: NDArray[np.float64]
    # int64, (n_classes, n_levels): codes, coarse levels first; -1 for a label that no other class has
    labels: NDArray[np.int64]
    weights: tuple[float, ...]  # of the levels
    known: NDArray[np.float64]  # float64, (n_known,): eigenvalues that need no work
    times: NDArray[np.int64]  # int64, (n_known,): how often each of them occurs

    def matrix(self) -> NDArray[np.float64]:
        """Write the part that needs work out, (n_classes, n_classes)."""
        root = np.sqrt(self.mass)
        kernel = np.zeros((len(root), len(root)))
        for weight, column in zip(self.weights, self.labels.T, strict=True):
            kernel += weight * (np.equal.outer(column, column) & (column != NONE)[:, None])
        kernel *= np.outer(root, root)
        kernel[np.diag_indices_from(kernel)] += self.diagonal
        return kernel

    def eigenvalues(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Compute all eigenvalues of K/N but zeros, and how often each occurs, from the matrix of few classes."""
        rest = np.linalg.eigvalsh(self.matrix()) if len(self.mass) else np.empty(0)
        return np.append(self.known, rest), np.append(self.times, np.ones(len(rest), np.int64))


def deflate(classes: LabelClasses, weights: tuple[float, ...]) -> Deflated:
    """Merge twins: classes of equal size whose labels are equal wherever other classes have them too.

    Of m twins with share p, and weights of w on the levels where each has a label of its own, m - 1 eigenvalues
    are w·p, and one class with mass m·p stands for them all. A class without a label in common is an eigenvalue.

    Args:
        classes: of the levels that count.
        weights: of these levels, above 0 and summing to 1.
    """
    labels = np.where(counts_of(classes.labels) == 1, NONE, classes.labels)
    key = combined([*labels.T, classes.counts])
    _, firsts, times = np.unique(key, return_index=True, return_counts=True)
    labels, share = labels[firsts], classes.counts[firsts] / classes.items
    weight = (labels == NONE) @ np.array(weights)
    alone = (labels == NONE).all(axis=1)
    repeated = np.where(alone, times, times - 1)
    return Deflated(
        mass=(share * times)[~alone],
        diagonal=(weight * share)[~alone],
        labels=labels[~alone],
        weights=weights,
        known=(weight * share)[repeated > 0],
        times=repeated[repeated > 0],
    )


def counts_of(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count for each class and level how many classes have the same label, int64 (n_classes, n_levels)."""
    return np.stack([np.bincount(column)[column] for column in labels.T], axis=1)


# From the eigenvalues of a kernel to the effective number of items: the exponential of the Rényi entropy.

# Eigenvalues below this are rounding noise. It matters for q < 1 only: noise of 1e-17 would enter as 1e-17 ** 0.1 =
# 0.02 each, which makes vendi-score up to 109 % wrong on rank-deficient kernels.
NEGLIGIBLE = 1e-11

NEAR_ONE = 0.1  # So close to q = 1 the plain formula divides two small numbers, and loses digits


def effective_number(
    eigenvalues: NDArray[np.float64], *, q: float, times: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Count the items a spectrum is worth: VS_q = (sum of λ^q)^(1/(1-q)), and its limits at q = 1 and ∞.

    Args:
        eigenvalues: float64, (..., n), those of K/N; they sum to 1 but for rounding.
        q: the order, above 0; infinity is allowed.
        times: int64, (n,): how often each eigenvalue occurs; once where it is not given.

    Returns:
        float64, (...), each between 1 and the number of eigenvalues.
    """
    often = np.ones(eigenvalues.shape[-1], np.int64) if times is None else times
    kept = np.maximum(eigenvalues, 0.0)
    if q < 1:
        kept = np.where(kept < NEGLIGIBLE, 0.0, kept)
    kept = kept / (often * kept).sum(axis=-1, keepdims=True)
    return np.clip(np.exp(entropy(kept, often, q=q)), 1.0, often.sum())


def entropy(shares: NDArray[np.float64], times: NDArray[np.int64], *, q: float) -> NDArray[np.float64]:
    """Compute the Rényi entropy of order q, in nats, of shares (..., n) that sum to 1, each occurring some times."""
    positive = shares > 0
    logs = np.log(np.where(positive, shares, 1.0))
    if q == 1:
        return np.asarray(-(times * shares * logs).sum(axis=-1))
    largest = shares.max(axis=-1)
    if math.isinf(q):
        return np.asarray(-np.log(largest))
    if abs(q - 1) < NEAR_ONE:
        # sum λ^q = 1 + sum λ (λ^(q-1) - 1): exact however close q comes to 1.
        return np.asarray(np.log1p((times * shares * np.expm1((q - 1) * logs)).sum(axis=-1)) / (1 - q))
    # The largest share is factored out, so that a high order does not underflow.
    powers = np.where(positive, np.exp(q * (logs - np.log(largest)[..., None])), 0.0)
    scaled = (times * powers).sum(axis=-1)
    return np.asarray((q * np.log(largest) + np.log(scaled)) / (1 - q))


Numbers: TypeAlias = NDArray[Any]  # float64 or complex128

_BLOCK = 2_000_000  # How many numbers are worked on at a time

_NULL = 1e-12  # Eigenvalues of a Gram matrix that are smaller, relatively, are rounding noise


def nests(kernel: Deflated) -> bool:
    """Tell whether no fine label is shared, and each label of the next level lies in one label of the coarsest."""
    *coarse, finest = kernel.labels.T
    if (finest != NONE).any():
        return False
    if len(coarse) < 2:
        return True
    outer, inner = coarse
    shared = inner != NONE
    index = np.empty(int(inner.max(initial=0)) + 1, np.int64)
    index[inner[shared]] = outer[shared]
    return bool((index[inner[shared]] == outer[shared]).all())


class NestedKernel:
    """D + sum of w2·u u' over countries + sum of w1·v v' over continents, D diagonal and positive.

    Each rank-one block is added by the matrix determinant lemma: with g the sum of mass/(t + d) over the classes of
    a country, and h the sum of g/(1 + w2·g) over the countries of a continent, log det(I + A/t) is the sum of
    log1p(d/t), log1p(w2·g) and log1p(w1·h).
    """

    def __init__(self, kernel: Deflated) -> None:
        """Order the classes by continent and country, and find where each begins."""
        columns = list(kernel.labels[:, :-1].T)
        outer, inner = columns if len(columns) == 2 else (np.full(len(kernel.mass), NONE), columns[0])
        wide, near = kernel.weights[:-1] if len(columns) == 2 else (0.0, kernel.weights[0])
        # Sums are taken in an order that the names of labels have no part in, as far as that is cheap.
        order = np.lexsort((kernel.mass, kernel.diagonal, inner, outer))
        outer, inner = outer[order], inner[order]
        self.mass, self.diagonal = kernel.mass[order], kernel.diagonal[order]
        self.inner = np.flatnonzero(np.append(True, (np.diff(inner) != 0) | (np.diff(outer) != 0)))
        self.outer = np.flatnonzero(np.append(True, np.diff(outer[self.inner]) != 0))
        self.near = np.where(inner[self.inner] == NONE, 0.0, near)
        self.wide = np.where(outer[self.inner][self.outer] == NONE, 0.0, wide)
        self.rank = len(self.mass)
        inside = np.add.reduceat(self.mass, self.inner)
        around = np.add.reduceat(inside, self.outer)
        self.trace = float(self.diagonal.sum() + self.near @ inside + self.wide @ around)
        self.least = float(self.diagonal.min())
        steps = np.diff(self.inner, append=self.rank)
        rows = self.near * inside + np.repeat(self.wide * around, np.diff(self.outer, append=len(self.inner)))
        self.most = float((self.diagonal + np.repeat(rows, steps)).max())

    def resolvent(self, t: Numbers) -> Numbers:
        """Compute the sum of λ/(λ + t) over the eigenvalues, for t (n,), real or complex, not minus an eigenvalue."""
        answer = np.empty(len(t), np.result_type(t, np.float64))
        step = max(1, _BLOCK // self.rank)
        for start in range(0, len(t), step):
            answer[start : start + step] = self.resolvent_block(t[start : start + step, None])
        return answer

    def resolvent_block(self, t: Numbers) -> Numbers:
        """Compute the sum for t, (n, 1), from derivatives by log t of the three kinds of logarithms."""
        sums = self.diagonal + t
        shares = self.mass / sums
        answer = (self.diagonal / sums).sum(axis=1)
        g = np.add.reduceat(shares, self.inner, axis=1)
        slope = np.add.reduceat(shares / sums, self.inner, axis=1)
        factor = 1 + self.near * g
        answer = answer + t[:, 0] * (self.near * slope / factor).sum(axis=1)
        h = np.add.reduceat(g / factor, self.outer, axis=1)
        slope = np.add.reduceat(slope / factor**2, self.outer, axis=1)
        return np.asarray(answer + t[:, 0] * (self.wide * slope / (1 + self.wide * h)).sum(axis=1))

    def below(self, x: float) -> bool:
        """Tell whether all eigenvalues are below x: x·I - A is positive definite, pivot by pivot."""
        sums = x - self.diagonal
        if not sums.min() > 0:
            return False
        g = np.add.reduceat(self.mass / sums, self.inner)
        factor = 1 - self.near * g
        if not factor.min() > 0:
            return False
        return bool((self.wide * np.add.reduceat(g / factor, self.outer)).max() < 1)


class CrossingKernel:
    """D + U W U', with a column of U for each shared label, of which the finest labels are eliminated beforehand.

    With M(t) = U'(D + t)^-1 U one needs the determinant of S(t) = I + W^½ M W^½, as small as the number of countries
    and continents. Classes with d = 0 add G/t to M, with G of low rank: in the eigenvectors of G, and with the
    square root of t taken out on its range, nothing blows up as t goes to 0.
    """

    def __init__(self, kernel: Deflated) -> None:
        """Part the labels into those that are eliminated and those that make the determinant."""
        from scipy import sparse

        finest, bare = kernel.labels[:, -1], kernel.diagonal == 0
        impure = np.zeros(int(finest.max(initial=0)) + 2, np.bool_)
        # The sum over classes that an eliminated label needs is simple only where none has a diagonal.
        impure[finest[~bare]] = True
        gone = (finest != NONE) & ~impure[finest]
        incidence, scale = _columns_of(kernel, gone)
        self.positive, self.diagonal = kernel.mass[~bare], kernel.diagonal[~bare]
        self.single = _outer_products(incidence[~bare])
        label = np.unique(finest[gone], return_inverse=True)[1]
        shape = (label.max(initial=-1) + 1, len(gone))
        groups = sparse.csr_array((kernel.mass[gone], (label, np.flatnonzero(gone))), shape)
        sums = groups @ incidence
        self.grouped = _outer_products(sums)
        self.group_mass = np.asarray(groups.sum(axis=1)).ravel()
        self.group_values = kernel.weights[-1] * self.group_mass
        gram = incidence[bare].T @ (incidence[bare] * kernel.mass[bare][:, None])
        gram = (gram - sums.T @ (sums / self.group_mass[:, None])).toarray()
        self.scale = scale
        self.gram = gram * np.outer(scale, scale)
        values, vectors = np.linalg.eigh(self.gram)
        self.range = values > _NULL * max(float(values.max(initial=0)), 1e-300)
        self.strength = np.where(self.range, values, 0.0)
        self.vectors = vectors * scale[:, None]
        self.rank = len(self.diagonal) + len(self.group_values) + int(self.range.sum())
        self.trace = float(kernel.diagonal.sum() + kernel.mass @ ((kernel.labels != NONE) @ np.array(kernel.weights)))
        self.least = min(1e-11, float(kernel.mass.min()))
        self.most = most(kernel)

    def resolvent(self, t: Numbers) -> Numbers:
        """Compute the sum of λ/(λ + t) over the eigenvalues, for t (n,), real or complex, not minus an eigenvalue."""
        answer = np.empty(len(t), np.result_type(t, np.float64))
        step = max(1, _BLOCK // (self.rank + self.gram.size))
        for start in range(0, len(t), step):
            answer[start : start + step] = self.resolvent_block(t[start : start + step])
        return answer

    def resolvent_block(self, t: Numbers) -> Numbers:
        """Compute the sum from the derivatives by log t of three kinds of logarithms; the last is of a determinant."""
        plain = (self.diagonal / (self.diagonal + t[:, None])).sum(axis=1)
        plain = plain + (self.group_values / (self.group_values + t[:, None])).sum(axis=1)
        if not len(self.gram):
            return np.asarray(plain)
        regular, slope = self.inner_products(t)
        root = np.where(self.range, np.sqrt(t)[:, None], 1.0)
        around = root[:, :, None] * root[:, None, :]
        scaled = around * (self.vectors.T @ regular @ self.vectors)
        change = around * (self.vectors.T @ slope @ self.vectors)
        diagonal = np.arange(len(self.gram))
        scaled[:, diagonal, diagonal] += np.where(self.range, t[:, None], 1.0) + self.strength
        change[:, diagonal, diagonal] += self.strength
        return np.asarray(plain + np.trace(np.linalg.solve(scaled, change), axis1=1, axis2=2))

    def inner_products(self, t: Numbers) -> tuple[Numbers, Numbers]:
        """Give M(t) less G/t, and the same of -t·M'(t), both (len(t), n_columns, n_columns)."""
        near = self.positive[:, None] / (self.diagonal[:, None] + t)
        far = 1 / (self.group_mass[:, None] * (self.group_values[:, None] + t))
        regular = self.single @ near + self.grouped @ far
        near *= t / (self.diagonal[:, None] + t)
        far *= t / (self.group_values[:, None] + t)
        slope = self.single @ near + self.grouped @ far
        shape = (len(t), *self.gram.shape)
        return regular.T.reshape(shape), slope.T.reshape(shape)

    def below(self, x: float) -> bool:
        """Tell whether all eigenvalues are below x: x·I - A is positive definite."""
        if not x > max(float(self.diagonal.max(initial=0)), float(self.group_values.max(initial=0))):
            return False
        near = self.positive / (x - self.diagonal)
        far = 1 / (self.group_mass * (x - self.group_values))
        inner = (self.single @ near + self.grouped @ far).reshape(self.gram.shape)
        small = np.eye(len(self.gram)) - self.scale[:, None] * inner * self.scale - self.gram / x
        return bool(np.linalg.eigvalsh(small).min(initial=1.0) > 0)


def _columns_of(kernel: Deflated, gone: NDArray[np.bool_]) -> tuple[Any, NDArray[np.float64]]:
    """Give the incidence of classes and shared labels that stay, sparse, and the root of the weight of each label."""
    from scipy import sparse

    levels = kernel.labels.shape[1]
    kept = kernel.labels != NONE
    kept[gone, -1] = False
    rows, level = np.nonzero(kept)
    labels, column = np.unique(combined([level, kernel.labels[rows, level]]), return_inverse=True)
    scale = np.empty(len(labels))
    scale[column] = np.sqrt(np.array(kernel.weights))[level] if levels else 0.0
    incidence = sparse.csr_array((np.ones(len(rows)), (rows, column)), (len(kept), len(labels)))
    return incidence, scale


def _outer_products(rows: Any) -> Any:  # noqa: ANN401 - sparse matrices of scipy
    """Give the outer product of each row of a sparse matrix, (n, c), with itself as a column, (c·c, n)."""
    from scipy import sparse

    n, c = rows.shape
    length = np.diff(rows.indptr)
    row = np.repeat(np.arange(n), length)
    left = np.repeat(np.arange(rows.nnz), length[row])
    first = np.cumsum(length[row]) - length[row]
    right = rows.indptr[row[left]] + np.arange(len(left)) - first[left]
    cell = rows.indices[left].astype(np.int64) * c + rows.indices[right]
    return sparse.csr_array((rows.data[left] * rows.data[right], (cell, row[left])), (c * c, n))


def most(kernel: Deflated) -> float:
    """Bound the eigenvalues by the largest ratio of A·x to x, for x the roots of the masses."""
    rows = kernel.diagonal.copy()
    for weight, column in zip(kernel.weights, kernel.labels.T, strict=True):
        shared = column != NONE
        sums = np.bincount(column[shared], weights=kernel.mass[shared], minlength=1)
        rows[shared] += weight * sums[column[shared]]
    return float(rows.max())


_FEW_NESTED = 48  # Up to so many classes after deflation their matrix is solved at once, where labels nest

_FEW_CROSSING = 150  # The same where they do not: sums over such spectra cost more

_HIGHEST_ON_AXIS = 1.1  # Above this order the integral over t > 0 loses digits

_STEP = 0.55  # In log t: the error is exp(-2·pi²/STEP), or 3e-16

_DIGITS = 38.0  # How many factors of e make a term negligible

_WIDEST_ANGLE = math.pi / 6


class ImplicitSpectrum(Protocol):
    """Eigenvalues that nobody computes: their sums come from the resolvent trace at some hundred points, to 13 digits.

    Psi(t) is the sum of λ/(λ + t). Up to order 1.1 the sum of λ^q is an integral of Psi over t > 0; above, where that
    integral loses digits, it is an integral over a curve around the spectrum. Both are sums at equal steps of a smooth
    integrand that dies out on both sides, and converge geometrically.
    """

    rank: int  # how many are above 0
    trace: float  # their sum
    least: float  # a positive number of which none that is above 0 is far below
    most: float  # a number that none is above

    def resolvent(self, t: NDArray[Any]) -> NDArray[Any]:
        """Compute the sum of λ/(λ + t)."""
        ...

    def below(self, x: float) -> bool:
        """Tell whether all are below x."""
        ...


def effective_numbers(classes: LabelClasses, weights: Sequence[float], orders: Sequence[float]) -> list[float]:
    """Compute the Vendi score for several orders.

    Classes are of the levels that count, coarse ones first, and weights, above 0, of these; they are scaled to sum to
    1.
    """
    total = sum(weights)
    exact = tuple(weight / total for weight in weights)
    if len(exact) == 1:
        sizes, times = np.unique(classes.counts, return_counts=True)
        return [float(effective_number(sizes / classes.items, q=q, times=times)) for q in orders]
    answers = {2.0: _score_of_order_two(classes, exact)} if 2.0 in orders else {}
    others = sorted({float(q) for q in orders} - {2.0})
    if others:
        answers |= dict(zip(others, _by_spectrum(deflate(classes, exact), others), strict=True))
    return [min(max(answers[float(q)], 1.0), float(classes.items)) for q in orders]


def _score_of_order_two(classes: LabelClasses, weights: Sequence[float]) -> float:
    """Compute 1 / (sum of λ²) in closed form: the sum of k(i, j)² over pairs is one of squared shares of labels."""
    total = 0.0
    for one, weight in enumerate(weights):
        for other in range(one, len(weights)):
            shares = classes.on([one] if one == other else [one, other]).counts / classes.items
            total += (1 if one == other else 2) * weight * weights[other] * float(shares @ shares)
    return 1 / total


def _by_spectrum(kernel: Deflated, orders: Sequence[float]) -> list[float]:
    """Compute the scores from eigenvalues where they are few, and else from sums over them."""
    nested = nests(kernel)
    if len(kernel.mass) <= (_FEW_NESTED if nested else _FEW_CROSSING):
        rest, times = kernel.eigenvalues()
        return [float(effective_number(rest, q=q, times=times)) for q in orders]
    return from_sums(kernel, NestedKernel(kernel) if nested else CrossingKernel(kernel), orders)


def from_sums(kernel: Deflated, implicit: ImplicitSpectrum, orders: Sequence[float]) -> list[float]:
    """Compute the scores from sums over the implicit eigenvalues and from those that deflation found."""
    low = tsallis_sums(implicit, [q for q in orders if q <= _HIGHEST_ON_AXIS])
    found = [math.exp(_entropy_from_tsallis(low[q] + _known_tsallis(kernel, q), q)) for q in low]
    high = [q for q in orders if q > _HIGHEST_ON_AXIS]
    top = max(largest_eigenvalue(implicit), float(kernel.known.max(initial=0))) if high else 0.0
    for q in high:
        if math.isinf(q):
            found.append(1 / top)
            continue
        known = float(kernel.times @ (kernel.known / top) ** q)
        total = math.log(known + power_sum(implicit, q, largest=top))
        found.append(math.exp((q * math.log(top) + total) / (1 - q)))
    return found


def _known_tsallis(kernel: Deflated, q: float) -> float:
    """Sum (λ^q - λ)/(1 - q) over the eigenvalues that deflation found."""
    logs = np.log(kernel.known)
    parts = -logs if q == 1 else np.expm1((q - 1) * logs) / (1 - q)
    return float(kernel.times @ (kernel.known * parts))


def _entropy_from_tsallis(tsallis: float, q: float) -> float:
    """Give the Rényi entropy that belongs to Tsallis's, both of order q."""
    return tsallis if q == 1 else math.log1p((1 - q) * tsallis) / (1 - q)


def tsallis_sums(spectrum: ImplicitSpectrum, orders: list[float]) -> dict[float, float]:
    """Compute the sum of (λ^q - λ)/(1 - q), at q = 1 the sum of -λ ln λ, for orders up to 1.1.

    As many eigenvalues of equal size and the same trace are taken off under the integral and added after it: then
    it converges fast on both sides for all these orders.
    """
    if not orders:
        return {}
    mean = spectrum.trace / spectrum.rank
    # Near t = 0 the integrand is as t^(1+q), far out as t^(q-2).
    start = math.log(spectrum.least) - _DIGITS / (1 + min(orders))
    end = math.log(spectrum.most) + _DIGITS / (2 - max(orders))
    t = np.exp(np.arange(start, end + _STEP, _STEP))
    difference = spectrum.resolvent(t) - spectrum.rank * mean / (mean + t)
    return {q: tsallis(q, spectrum.trace, mean, _STEP * float(np.sum(t**q * difference))) for q in orders}


def tsallis(q: float, trace: float, mean: float, integral: float) -> float:
    """Add what was taken off; nothing here is divided by 1 - q."""
    e = 1 - q
    equal = -math.log(mean) if e == 0 else math.expm1(-e * math.log(mean)) / e
    return trace * equal + float(np.sinc(e)) * integral


def power_sum(spectrum: ImplicitSpectrum, q: float, *, largest: float) -> float:
    """Compute the sum of (λ/largest)^q for an order above 1: the residues of z^(q-1)·λ/(z - λ) inside a curve.

    In w = log(z/largest) the eigenvalues lie on the negative half line, again 2·pi·i above it and so on. The curve
    -4·log cosh(s - i·angle) keeps between them, the tighter the higher the order, so that z^q does not grow.
    """
    angle = min(_WIDEST_ANGLE, math.sqrt(1 / q))
    step = 2 * math.pi * angle / (_DIGITS - 2)
    reach = math.acosh(math.sqrt(math.exp(_DIGITS / (2 * q)) + math.sin(angle) ** 2))
    s = np.arange(0.5 * step, reach + step, step) - 1j * angle
    w = -4 * np.log(np.cosh(s))
    z = largest * np.exp(w)
    # λ/(z - λ) is -λ/(λ + t) at t = -z, and dw/ds is -4·tanh(s).
    terms = np.exp(q * w) * spectrum.resolvent(-z) * 4 * np.tanh(s)
    return float(step * np.sum(terms.imag) / math.pi)


def largest_eigenvalue(spectrum: ImplicitSpectrum) -> float:
    """Find the largest eigenvalue by bisection."""
    low, high = 0.0, spectrum.most * (1 + 1e-12)
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return middle
        if spectrum.below(middle):
            high = middle
        else:
            low = middle
