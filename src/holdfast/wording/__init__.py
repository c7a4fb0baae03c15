"""The sentences. Everything below this room holds facts: fields and enumerations; this room turns them into plain English.

No code reads a sentence back. Imported by what shows things to people only: publication, report, the command line.
"""

from holdfast.wording.dispatch import describe
from holdfast.wording.posterior import posterior_paragraph

__all__ = ["describe", "posterior_paragraph"]
