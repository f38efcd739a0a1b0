"""Key files at random, or alike on all machines that have the seed."""

from pathlib import Path

import pytest

from quorate_api import exit_codes, main
from quorate_api.security import key_files
from quorate_api.security.key_files import SeedRefused, make_keys
from quorate_api.security.keys import Keys
from quorate_api.security.staff_tokens import StaffTokens
from quorate_api.security.tokens import TokenSigner

SEED = "00112233445566778899aabbccddeeff" * 2


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_keys_of_one_seed_are_the_same_everywhere(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_keys(tmp_path / name, SEED + "\n")
    first = contents(tmp_path / "a")
    assert first == contents(tmp_path / "b")
    assert set(first) == {
        key_files.SIGNING_KEY_FILE,
        key_files.PUBLIC_KEYS_FILE,
        key_files.SECRET_FILE,
        key_files.ADMIN_TOKEN_FILE,
        key_files.FLEET_KEY_FILE,
        *key_files.STAFF_TOKEN_FILES.values(),
    }
    assert len({text.strip()[-40:] for text in first.values()}) == len(first), "no key tells another"
    TokenSigner(first[key_files.SIGNING_KEY_FILE])
    keys = Keys(bytes.fromhex(first[key_files.SECRET_FILE]))
    token = first[key_files.STAFF_TOKEN_FILES["operator"]]
    assert StaffTokens.read(keys, "operator", token).who(keys, token.strip()) is not None
    # A change of what follows from a seed would lock machines of earlier releases out.
    assert first[key_files.FLEET_KEY_FILE] == "qfk_e7bd842ee07ce3346a29df87e4c2837d3d782b885d45a0eb4e760998bd9ecef4\n"
    make_keys(tmp_path / "other", SEED[:-1] + "0")
    assert not set(contents(tmp_path / "other").values()) & set(first.values())


def test_keys_at_random_differ_and_stay(tmp_path: Path) -> None:
    made = make_keys(tmp_path / "a")
    make_keys(tmp_path / "b")
    first = contents(tmp_path / "a")
    assert {path.name for path in made} == set(first)
    assert not set(first.values()) & set(contents(tmp_path / "b").values())
    assert key_files.FLEET_KEY_FILE not in first, "the first coordinator makes it"
    assert make_keys(tmp_path / "a", SEED) != [], "of coordinators"
    assert contents(tmp_path / "a").items() >= first.items(), "none is replaced"
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "a").iterdir() if path.suffix != ".json")


@pytest.mark.parametrize("seed", ["", "00" * 31, "zz" * 32])
def test_a_bad_seed_is_refused_and_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: str) -> None:
    with pytest.raises(SeedRefused, match="openssl rand"):
        make_keys(tmp_path / "keys", seed)
    (tmp_path / "seed").write_text(seed)
    arguments = ["keys-init", "--dir", str(tmp_path / "keys"), "--seed-file", str(tmp_path / "seed")]
    assert main.main(arguments) == exit_codes.CONFIGURATION
    assert "hexadecimal digits" in capsys.readouterr().err
    assert not (tmp_path / "keys").exists()
