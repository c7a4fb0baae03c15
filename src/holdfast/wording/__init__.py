"""The sentences. Everything below this package holds facts: fields and enumerations; this package turns them into plain English.

No code reads a sentence back. Imported by what shows things to people only: publication, report, the command line.
"""

from holdfast.wording.dispatch import describe

__all__ = ["describe"]
