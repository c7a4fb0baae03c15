"""The `holdfast` command with the toy mechanisms: python -m tests.toys.command [arguments of holdfast].

With TOY_KILL set, the process kills itself when the folder is about to be written, after it put the released counts into that file: so a
test can see that a resumed release has the same ones.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import tests.toys.conditional  # noqa: F401
from holdfast.cli.commands import main
from holdfast.publication import publication


def kill(release: Any, *_: Any) -> None:
    Path(os.environ["TOY_KILL"]).write_text(json.dumps(release.table.counts.tolist()))
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    if "TOY_KILL" in os.environ:
        setattr(publication, "fill_folder", kill)  # noqa: B010
    main()
