"""What a notebook shows of an object: Jupyter asks for it by a name with an underscore, and so does this one function."""

from __future__ import annotations

from typing import Any


def notebook_page(thing: Any) -> str:
    """The HTML that Jupyter shows for the object."""
    page: str = thing._repr_html_()
    return page
