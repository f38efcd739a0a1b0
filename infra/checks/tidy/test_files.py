"""Small rooms: no source file too long to read, no large file without a reason."""

from pathlib import Path

LINES_MAX = {".rs": 800, ".py": 800, ".go": 800, ".ts": 800, ".tsx": 250, ".mjs": 800, ".sh": 800}
BYTES_MAX = 1 << 20
LARGE_DATA: dict[str, str] = {}  # path → why it is here although it is large
GENERATED = ("generated", "__generated__", "/gen/", "vectors")


def test_source_files_stay_readable(texts: dict[Path, str]) -> None:
    too_long = []
    for path, text in texts.items():
        limit = LINES_MAX.get(path.suffix)
        lines = text.count("\n")
        if limit and lines > limit and not any(mark in str(path) for mark in GENERATED):
            too_long.append(f"{path}: {lines} lines, at most {limit}; split it by idea")
    assert not too_long, "\n".join(too_long)


def test_no_large_files(repository: Path, files: list[Path]) -> None:
    sizes = {str(path): (repository / path).stat().st_size for path in files}
    large = [f"{path}: {size} bytes" for path, size in sizes.items() if size > BYTES_MAX and path not in LARGE_DATA]
    assert not large, "\n".join(large)


def test_the_list_of_large_data_is_not_stale(repository: Path) -> None:
    stale = [path for path in LARGE_DATA if not (repository / path).exists()]
    assert not stale
