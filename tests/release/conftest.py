from pathlib import Path

import pytest

from tests.release.release_made import built, copy_of, write_hand, write_release


@pytest.fixture(scope="session")
def one_card(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("card")
    built(write_release(root / "run"), write_hand(root / "hand"), root / "card")
    return root / "card"


@pytest.fixture
def card(one_card: Path, tmp_path: Path) -> Path:
    return copy_of(one_card, tmp_path / "card")
