"""Files that are held against each other."""

from pathlib import Path

import pytest

from culturekit.errors import UsageError
from culturekit.families.handles.inputs import Files
from culturekit.families.routes import RouteOptions, RouteReads, routes
from culturekit.families.stability import named_tables


def test_a_file_is_not_compared_with_itself(tmp_path: Path) -> None:
    here, again = tmp_path / "scores.parquet", tmp_path / "." / "up" / ".." / "scores.parquet"
    with pytest.raises(UsageError, match="a ranking is compared with itself; expected another file on each side"):
        named_tables([f"clip={here}", f"siglip={again}"])
    with pytest.raises(UsageError, match="a route is compared with itself"):
        routes(RouteReads(Files([here]), Files([tmp_path / "other.parquet", again])), RouteOptions())
