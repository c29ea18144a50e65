"""Shares of what images really show: what they are mapped to, put right by what an audit found.

Images of one mapped label are a cell. The audit says what the images of a cell really show; a prompt's shares
are the cells' findings weighted by how many of its images lie in each. Cells that the audit hardly met are
pooled. See docs/corrected-diversity.md for the derivation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.corrected.audited_counts import AuditedCounts

__all__ = ["DOUBT", "Cells", "cells_of", "drawn_findings", "drawn_shares", "findings_of", "shares_of"]

FEWEST = 3
"""A mapped label with fewer audited images is pooled with its like."""

DOUBT = 1.0
"""How many imagined findings are added to a cell when its scatter is drawn.

A cell whose three audited images all agree is not known to be without error; one more finding, drawn from what the
whole audit says of errors, keeps its scatter alive. The estimate itself is not touched by it."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Groups of mapped labels, and what the audit found in each.

    Attributes:
        of_label: int64, (n_labels,): the cell of each mapped label.
        found: float64, (n_cells, n_labels): audited images by cell and what they show.
        leaning: float64, (n_cells, n_labels): what one more finding in the cell would be expected to be.
    """

    of_label: NDArray[np.int64]
    found: NDArray[np.float64]
    leaning: NDArray[np.float64]

    @property
    def audited(self) -> NDArray[np.float64]:
        """Audited images per cell, float64 (n_cells,)."""
        return np.asarray(self.found.sum(axis=1))


def cells_of(counts: AuditedCounts) -> Cells:
    """Make the cells: each label that the audit met often enough, and one pool of the others."""
    met = counts.audit.sum(axis=1)
    alone = np.flatnonzero(met >= FEWEST)
    pooled = np.flatnonzero(met < FEWEST)
    of_label = np.zeros(len(met), np.int64)
    of_label[alone] = np.arange(len(alone))
    of_label[pooled] = len(alone)
    if len(alone) and met[pooled].sum() < 2:
        of_label[pooled] = int(np.argmin(met[alone]))  # nothing to go by: with those the audit knows least
    cells = int(of_label.max()) + 1
    found = np.zeros((cells, len(met)))
    np.add.at(found, of_label, counts.audit)
    return Cells(of_label, found, leaning(counts, of_label, cells))


def leaning(counts: AuditedCounts, of_label: NDArray[np.int64], cells: int) -> NDArray[np.float64]:
    """Expect a finding to agree with the mapping as often as the whole audit does, or to err as it errs."""
    right = np.trace(counts.audit)
    agree = (right + 0.5) / (counts.audit.sum() + 1)
    errors = counts.audit.sum(axis=0) - np.diagonal(counts.audit) + 1 / len(of_label)
    mapped = counts.mapped.sum(axis=0).astype(np.float64)
    inside = np.zeros((cells, len(of_label)))
    inside[of_label, np.arange(len(of_label))] = mapped
    total = inside.sum(axis=1, keepdims=True)
    inside = np.divide(inside, total, out=np.zeros_like(inside), where=total > 0)
    expected = agree * inside + (1 - agree) * errors / errors.sum()
    return np.asarray(expected / expected.sum(axis=1, keepdims=True))


def shares_of(counts: AuditedCounts, cells: Cells, *, doubt: float = 0.0) -> NDArray[np.float64]:
    """Estimate the shares of each prompt, float64 (n_prompts, n_labels)."""
    return in_cells(counts, cells) @ findings_of(cells, doubt=doubt)


def findings_of(cells: Cells, *, doubt: float = 0.0) -> NDArray[np.float64]:
    """Say what the images of each cell show, float64 (n_cells, n_labels): shares that sum to 1."""
    return np.asarray((cells.found + doubt * cells.leaning) / (cells.audited + doubt)[:, None])


def drawn_shares(counts: AuditedCounts, cells: Cells, *, draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw images and audit again, float64 (draws, n_prompts, n_labels)."""
    inside = in_cells(counts, cells)
    images = counts.mapped.sum(axis=1)
    weights = np.stack(
        [rng.multinomial(int(n), row, size=draws) / n for n, row in zip(images, inside, strict=True)], axis=1
    )
    findings = drawn_findings(cells, draws=draws, rng=rng)
    shares = np.zeros((draws, *counts.mapped.shape))
    for cell in range(len(cells.found)):
        shares += weights[:, :, cell, None] * findings[:, None, cell]
    return shares


def drawn_findings(cells: Cells, *, draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw the audit again, float64 (draws, n_cells, n_labels).

    A cell with k audited images is drawn k - 1 times: the plain bootstrap of k would scatter less than the
    audit does, by (k - 1) / k.
    """
    again = np.zeros((draws, *cells.found.shape))
    for cell, (found, expected, audited) in enumerate(zip(cells.found, cells.leaning, cells.audited, strict=True)):
        times = max(round(audited) - 1, 1)
        chances = (found + DOUBT * expected) / (audited + DOUBT)
        again[:, cell] = rng.multinomial(times, chances / chances.sum(), size=draws) / times
    return again


def in_cells(counts: AuditedCounts, cells: Cells) -> NDArray[np.float64]:
    """Give the share of each prompt's images in each cell, float64 (n_prompts, n_cells)."""
    totals = np.zeros((len(counts.mapped), len(cells.found)))
    np.add.at(totals.T, cells.of_label, counts.mapped.T.astype(np.float64))
    return np.asarray(totals / totals.sum(axis=1, keepdims=True))
