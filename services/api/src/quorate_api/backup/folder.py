"""A folder of backups: `base/TIME/`, each a copy of the whole cluster, and `wal/` with all that was written since."""

import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

FORM = "%Y-%m-%dT%H-%M-%SZ"
SEGMENT = re.compile(r"[0-9A-F]{24}(\.partial)?")
LABEL = re.compile(r"^START WAL LOCATION: \S+ \(file ([0-9A-F]{24})\)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Base:
    """A base backup that is whole."""

    path: Path
    taken_at: datetime

    def first_segment(self) -> str:
        """The first segment of the log that it needs."""
        found = LABEL.search((self.path / "backup_label").read_text())
        if found is None:
            raise AssertionError(f"{self.path / 'backup_label'} names no begin of the log")
        return found.group(1)


@dataclass(frozen=True, slots=True)
class BackupFolder:
    root: Path

    @property
    def wal(self) -> Path:
        return self.root / "wal"

    def create(self) -> None:
        """Only its owner may read it: it holds everything that the database does."""
        for folder in (self.root, self.root / "base", self.wal):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def bases(self) -> list[Base]:
        """Oldest first. A broken off backup has no name in this form."""
        found = []
        for path in (self.root / "base").glob("*Z"):
            taken_at = datetime.strptime(path.name, FORM).replace(tzinfo=UTC)
            found.append(Base(path, taken_at))
        return sorted(found, key=lambda base: base.taken_at)

    def new_base(self, now: datetime) -> tuple[Path, Path]:
        """The folder in which it is made, and its name once it is whole."""
        name = now.strftime(FORM)
        draft = self.root / "base" / f"{name}.part"
        return draft, self.root / "base" / name

    def segments(self) -> list[Path]:
        return sorted(path for path in self.wal.iterdir() if SEGMENT.fullmatch(path.name))

    def forget(self, kept: int) -> list[Path]:
        """Remove all bases but the newest, and the part of the log that only they need. Returns the removed bases."""
        bases = self.bases()
        gone = [base.path for base in bases[:-kept]]
        for path in [*gone, *(self.root / "base").glob("*.part")]:
            shutil.rmtree(path)
        if gone:
            first = bases[-kept].first_segment()
            for segment in self.segments():
                # Names begin with the timeline: within one, order of names is the order of the log.
                if segment.name[8:24] < first[8:24]:
                    segment.unlink()
        return gone
