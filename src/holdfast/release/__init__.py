"""From a table to a published folder: plan, release, verify.

`holdfast.release(table, keep, mechanism)` is a public name and this folder's name at once, so the module itself can be called.
"""

import sys
from types import ModuleType
from typing import Any

from holdfast.release.plan import Plan, plan
from holdfast.release.release import Release, release

__all__ = ["Plan", "Release", "plan", "release"]


class _CallableModule(ModuleType):
    def __call__(self, *arguments: Any, **named: Any) -> Release:
        return release(*arguments, **named)


sys.modules[__name__].__class__ = _CallableModule
