"""What every engine does alike: the checks of input and output, and that no room before the engines takes counts."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast import channels
from holdfast.channels import Facts
from holdfast.engines.local import check_input, check_published
from holdfast.errors import InvariantBroken, OutsideBounds, RequestTooLarge
from holdfast.tables import Declarations
from tests.channels.cases import COUNTS, GRID, KEEPS, table

LAPLACE = hf.GeneralizedLaplace(epsilon="1/2", per="distance")
CONDITIONAL = hf.Conditional(epsilon="1/2", per="distance")
"""Within counts of zero or more."""


def test_output_is_checked() -> None:
    """What no sampler of ours makes is found before it is published."""
    channel = LAPLACE.channel(Facts.of(Declarations.of(table()), KEEPS["grid"]))
    check_published(channel, COUNTS, COUNTS)
    broken = COUNTS.copy()
    broken[4] += 1
    with pytest.raises(InvariantBroken, match=r"margin.* did not come out exactly"):
        check_published(channel, COUNTS, broken)
    far = COUNTS + np.array([1, -1, 0, -1, 1, 0, 0, 0, 0]) * (1 << 62)
    with pytest.raises(RequestTooLarge, match=r"2\^62"):
        check_published(channel, COUNTS, far)


def test_bounds_are_checked_before_and_after() -> None:
    channel = CONDITIONAL.channel(Facts.of(GRID, KEEPS["one sum"]))
    outside = COUNTS.copy()
    outside[:3] += [0, -4, 4]  # the kept total holds, and a count is -1
    check_input(channel, COUNTS)
    check_published(channel, COUNTS, COUNTS)
    with pytest.raises(OutsideBounds, match="does not lie within the bounds") as refusal:
        check_input(channel, outside)
    assert not any(character.isdigit() for character in str(refusal.value))
    with pytest.raises(InvariantBroken, match="left its bounds"):
        check_published(channel, COUNTS, outside)


def test_channels_take_no_counts() -> None:
    """Of all functions of the room, only `holds` of a layout is given a table."""
    takes = set()
    for path in Path(channels.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                names = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
                takes |= {f"{path.stem}.{node.name}"} if names & {"counts", "published", "cell_keys"} else set()
    assert takes == {"layout.holds"}
