from pathlib import Path

import pytest
import yaml

from culturekit.builders.simulated.simulated_pages import PAGES, write_pages
from culturekit.errors import UsageError
from culturekit.generation.simulated.scenes.vocabulary import world


def test_every_activity_that_is_extracted_stands_on_a_page_of_its_category(tmp_path: Path) -> None:
    assert write_pages(tmp_path, ["US", "IR"]) == 6
    listed = yaml.safe_load((tmp_path / PAGES).read_text())["pages"]
    for iso in ("US", "IR"):
        own = [page for page in listed if page["country"] == iso]
        assert sorted(category for page in own for category in page["categories"]) == [
            "celebrations", "dances", "games", "greetings", "religious",
        ]  # fmt: skip
        for page in own:
            text = (tmp_path / page["file"]).read_text().replace("&#x27;", "'")
            for category in page["categories"]:
                counts = [text.count(name) for name in world().categories[category].activities]
                assert min(counts) >= 1
                assert max(counts) >= 2, "some are named twice"
    assert "the United States" in (tmp_path / "US-games.wikitext").read_text()


def test_a_country_of_another_world_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no SE; expected some of US, ES"):
        write_pages(tmp_path, ["IR", "SE"])
