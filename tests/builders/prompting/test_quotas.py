from pathlib import Path

import pytest

from culturekit.builders.prompting.quotas import load_quotas, read_quotas
from culturekit.core.errors import ConfigError, UsageError


def saved(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


YAML = """
quotas:
  - {quota: 1}
  - {concept: art, quota: 2}
  - {country: Japan, quota: 3}
  - {concept: art, country: "NO", quota: 0}
"""
CSV = "\ufeffConcept;Country;Quota\r\n;;1\r\nart;;2\r\n;Japan;3\r\nart;NO;0\r\n;;\r\n"


@pytest.mark.parametrize(("name", "text"), [("q.yaml", YAML), ("q.csv", CSV)])
def test_the_closest_quota_counts(tmp_path: Path, name: str, text: str) -> None:
    quotas = load_quotas(saved(tmp_path, name, text))
    groups = [("art", "NO"), ("art", "JP"), ("cuisine", "JP"), ("cuisine", "BR")]
    assert [quotas.quota_of(group) for group in groups] == [0, 2, 3, 1]


def test_a_number_is_for_every_group() -> None:
    assert read_quotas(" 7 ").quota_of(("art", "BR")) == 7
    for wrong in ("0", "-3", "99999999999"):
        with pytest.raises(UsageError, match="a number of artifacts"):
            read_quotas(wrong)


def test_every_mistake_of_a_table_is_said_at_once(tmp_path: Path) -> None:
    text = "quotas:\n  - {concept: art, quota: 1}\n  - {country: Atlantis, quota: 1}\n  - {concept: art, quota: 2}\n"
    with pytest.raises(ConfigError) as told:
        load_quotas(saved(tmp_path, "q.yaml", text))
    assert [(problem.line, problem.message) for problem in told.value.problems] == [
        (3, "unknown country 'Atlantis'"),
        (4, "a second quota for art"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("q.csv", "concept,country\nart,BR\n", "lacks the column quota"),
        ("q.csv", "concept,country,quota\nart,BR,many\n", "q.csv:2: quota: expected a whole number"),
        ("q.csv", "concept,country,quota\n", "has no quota"),
        ("q.yaml", "quotas: []\n", "has no quota"),
        ("q.yaml", "quotas: [{quota: -1}]\n", "greater than or equal to 0"),
        ("q.yaml", "quotas: [{qota: 1}]\n", "did you mean 'quota'"),
    ],
)
def test_a_wrong_table_is_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(UsageError) as told:
        load_quotas(saved(tmp_path, name, text))
    assert message in str(told.value)
