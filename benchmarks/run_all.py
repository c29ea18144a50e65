"""Run every benchmark: `make bench`; with --full also those that take long."""

import subprocess
import sys
from pathlib import Path

QUICK = (("startup.py",), ("stage_rates.py",), ("ahead_matching.py",), ("vendi_speed.py",), ("vendi_table.py",))
LONG = (
    ("installed_size.py",),
    ("agreement.py",),
    ("statistics_coverage.py",),
    ("ahead_coverage.py",),
    ("judged_coverage.py",),
    ("realism_coverage.py",),
    ("activity_coverage.py",),
    ("caption_coverage.py", "--runs", "400"),
    ("inclusion_coverage.py",),
    ("inclusion_study.py",),
    ("embedding.py",),
    ("interval_coverage.py",),
    ("prdc_speed.py",),
    ("corrected_speed.py",),
    ("tiny_clip.py",),
    ("journal.py",),
    ("llm_replay.py",),
    ("llm_engine_replay.py",),
    ("llm_overhead.py",),
    ("llm_plan.py",),
    ("generation_overhead.py",),
    ("completion.py", "--full"),
    ("release_world.py", "--full"),
    ("reviewed_release.py", "--full"),
    ("evaluation.py", "--full"),
    ("evaluation_coverage.py", "--full"),
    ("corrected_raters.py", "--audits", "200"),
    ("corrected_worlds.py", "--full", "--add"),
    ("corrected_comparisons.py", "--runs", "60"),
    ("corrected_forecasts.py", "--images", "3", "--runs", "20"),
    ("algorithm1.py", "--full"),
    ("trace_line.py", "--full"),
    ("vendi_table.py", "--full"),
    ("search.py", "--full"),
    ("recognition.py", "--full"),
    ("report_page.py",),
    ("mutation.py",),
)


def main() -> int:
    """Run them one after the other; the documentation is written anew from what they record."""
    here = Path(__file__).parent
    for name, *options in QUICK + (LONG if "--full" in sys.argv else ()):
        subprocess.run([sys.executable, str(here / name), *options], check=True)
    return subprocess.run([sys.executable, str(here.parent / "docs/generate.py")], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
