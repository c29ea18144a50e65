"""Batch jobs, whichever protocol they came by."""

from dataclasses import dataclass

__all__ = ["Job"]


@dataclass(slots=True)
class Job:
    """One job."""

    name: str
