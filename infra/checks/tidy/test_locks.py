"""Lock files agree: what is tested is what runs in production."""

import re
from pathlib import Path

PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+)", re.MULTILINE)
HASHES_MISSING = re.compile(r"^[A-Za-z0-9._-]+==[^\\\n]*$", re.MULTILINE)
PRODUCTION = Path("services/api/requirements.txt")
DEVELOPMENT = Path("infra/setup/python.txt")


def test_development_has_the_versions_of_production(texts: dict[Path, str]) -> None:
    production, development = (dict(PIN.findall(texts[path])) for path in (PRODUCTION, DEVELOPMENT))
    assert len(production) > 20
    different = {name: (version, development.get(name)) for name, version in production.items()}
    different = {name: pair for name, pair in different.items() if pair[0] != pair[1]}
    assert not different, f"production and development differ; `make lock` brings them together: {different}"


def test_every_pin_has_hashes(texts: dict[Path, str]) -> None:
    for path in (PRODUCTION, DEVELOPMENT, Path("infra/setup/pulumi.txt"), Path("infra/setup/uv.txt")):
        assert not HASHES_MISSING.findall(texts[path]), path
