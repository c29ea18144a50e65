"""What people mean who name no place: the audit form tells them apart, since only the first are alike."""

__all__ = ["CANNOT_TELL", "NONE_MEANS", "NOT_IN_LIST", "NO_CULTURE"]

NO_CULTURE = "no culture shown"
CANNOT_TELL = "cannot tell"
NOT_IN_LIST = "not in the list"

NONE_MEANS = (NO_CULTURE, CANNOT_TELL, NOT_IN_LIST)
"""The values of `none_means` in a table of audits."""
