"""Everything Holdfast can refuse, as one tree.

    HoldfastError                    code, exit_code
    +-- InvalidParameter             a value outside what the theory or the machine allows   (also a ValueError)
    |   +-- InexactParameter         a float where privacy needs an exact number             (also a TypeError)
    |   +-- RequestTooLarge          would not fit in memory, or not in 64-bit integers
    +-- KeyMisuse                    a noise key used in a way that would repeat or expose noise
    |   +-- StreamReused             the same words asked for twice
    |   +-- KeyClosed                used after close()
    |   +-- ForkedKey                used in a process that did not open it
    |   +-- KeyExhausted             more keystream than the stated collision bounds allow
    +-- PrecisionExhausted           a number could not be enclosed narrowly at the largest precision tried
    +-- InvalidTable                 what was given is no table of counts that can be read   (also a ValueError)
    |   +-- UnreadableInput          a file or database that cannot be opened, or a malformed file
    |   +-- UnknownColumn            a column that does not exist, or exists twice
    |   +-- InvalidCode              a code that is missing or is not text, or is not declared
    |   +-- InvalidCount             a count that is not a whole number from 0 to 2^62 - 1, or a key out of its range
    |   +-- DuplicateCells           the same cell listed twice
    |   +-- EmptyTable               no cells, or no records
    |   +-- OutsideUniverse          records outside the declared universe
    |   +-- TooManyRecords           someone has more records than was promised
    |   +-- OutOfScope               survey weights or magnitudes: Holdfast protects counts
    |   +-- ConfidentialTable        counts asked for where they could leak, such as in a pickle
    +-- InvalidConstraint             a kept total that names nothing, or does not fit the table   (also a ValueError)
    |   +-- ContradictingTotals      declared values of kept totals that disagree
    |   +-- NothingLeft              kept totals that fix every cell: nothing is left to protect
    |   +-- NotAcknowledged          true counts that would be published, and another number of them was allowed
    +-- InvalidHierarchy             a code tree with a cycle, two parents, a gap, or other leaves than its column   (also a ValueError)
    +-- NoExactSampler               a law that no exact sampler can draw in reasonable time
    +-- ChainProblem                 a Markov chain that cannot be used
    |   +-- UnreachableLattice       moves that do not reach every table with the kept totals
    |   +-- NoMeeting                coupled chains that did not meet before the cap: no bound was obtained
    +-- InvalidRun                   a run file that cannot be read or asks for what does not exist   (also a ValueError)
    +-- OutputProblem                a folder that cannot be written
    |   +-- OutputExists             something already exists there
    |   +-- IdenticalRelease         this very release already exists: a second draw would weaken it
    +-- VerificationFailed           a published folder that is not what its card says
    +-- InvariantBroken              a kept total that did not come out: a fault of ours, nothing is written
    +-- LedgerProblem                a ledger that cannot be used, or does not allow what was asked
    |   +-- WouldBeRefused           the command line: a plan whose release the ledger would refuse
    |   +-- NoGrant                  no budget was granted for this data set
    |   +-- BudgetExceeded           more than what is left
    |   +-- WrongState               a step that does not follow from where the release stands
    |   +-- OtherInput               a release resumed on other data than it was begun with
    |   +-- LedgerBroken             a ledger whose chain was changed, or a card that is not in it
    |   |   +-- WitnessMismatch      a ledger that is not the one seen before: put back, written anew, gone or exchanged
    |   +-- NoWitness                no place outside the ledger to remember its head
    +-- WrongUse                     the command line: an unknown command or option
    +-- Stopped                      the command line: Ctrl-C
    |   +-- Terminated               the command line: SIGTERM
    +-- AfterPublication             published, and what came after failed: the message, or closing the ledger's entry
    +-- MessageNotWritten            the command line: standard output is full or closed
    +-- InternalError                the command line: a fault of ours that nobody foresaw
    |   +-- OutOfMemory              the command line: memory did not suffice

Every message has three parts: what is wrong, what was found (public things only), what to do. A message never holds a
confidential count, a key or noise. `code` is stable and documented in docs/errors.md; `exit_code` is what the command line returns, and
`wording/endings.py` says for every code what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class HoldfastError(Exception):
    """Base of every error raised on purpose; `str(error)` is one complete sentence or more.

    `field` names the parameter or the key of the run file that is wrong, where it is one; `details` are public results that came before.
    """

    code: ClassVar[str] = "holdfast"
    exit_code: ClassVar[int] = 1

    def __init__(self, *told: object, field: str | None = None, details: Mapping[str, object] | None = None) -> None:
        super().__init__(*told)
        self.field = field
        self.details = details


class InvalidParameter(HoldfastError, ValueError):
    """A parameter is outside what the theory or the machine allows."""

    code = "invalid-parameter"
    exit_code = 2


class InexactParameter(InvalidParameter, TypeError):
    """A float was given where privacy depends on the number; the message shows the string to write instead."""

    code = "inexact-parameter"


class RequestTooLarge(InvalidParameter):
    """The request would not fit in memory or could leave 64-bit integers."""

    code = "request-too-large"


class KeyMisuse(HoldfastError, RuntimeError):
    """A noise key was used in a way that would repeat or expose noise."""

    code = "key-misuse"
    exit_code = 3


class StreamReused(KeyMisuse):
    """One labelled stream serves one noise vector; it was asked for a second time."""

    code = "stream-reused"


class KeyClosed(KeyMisuse):
    """The key or stream was closed; its secret is gone."""

    code = "key-closed"


class ForkedKey(KeyMisuse):
    """A key or stream was used in a process other than the one that opened it."""

    code = "forked-key"


class KeyExhausted(KeyMisuse):
    """Going on would break the collision bounds stated in docs/exact-numbers.md."""

    code = "key-exhausted"


class PrecisionExhausted(HoldfastError, ArithmeticError):
    """A number could not be enclosed narrowly enough at the largest precision tried."""

    code = "precision-exhausted"
    exit_code = 4


class InvalidTable(HoldfastError, ValueError):
    """The data is not a table of counts that Holdfast can read. The message names file, column and row number, never a value."""

    code = "invalid-table"
    exit_code = 5


class UnreadableInput(InvalidTable):
    """A file or database cannot be opened, or the file is malformed."""

    code = "unreadable-input"


class UnknownColumn(InvalidTable):
    """A column that was asked for does not exist, or exists twice."""

    code = "unknown-column"


class InvalidCode(InvalidTable):
    """A code is missing, is not text, or is not declared."""

    code = "invalid-code"


class InvalidCount(InvalidTable):
    """A count is not a whole number from 0 to 2^62 - 1, or a record or cell key is outside the declared range (2^32 keys by default)."""

    code = "invalid-count"


class DuplicateCells(InvalidTable):
    """The same cell is listed more than once."""

    code = "duplicate-cells"


class EmptyTable(InvalidTable):
    """There are no cells, or no records to count."""

    code = "empty-table"


class OutsideUniverse(InvalidTable):
    """Records fall outside the declared universe; the message names columns, not how many records."""

    code = "outside-universe"


class TooManyRecords(InvalidTable):
    """An identifier occurs in more records than max_records allows; the message says neither which nor how many do."""

    code = "too-many-records"


class OutOfScope(InvalidTable):
    """Survey weights and magnitudes are not counts; their protection needs other theory."""

    code = "out-of-scope"


class ConfidentialTable(InvalidTable):
    """Confidential counts were about to leave their object unseen, such as in a pickle."""

    code = "confidential-table"


class InvalidHierarchy(HoldfastError, ValueError):
    """A code tree has a cycle, a code with two parents, a gap in its levels, or other leaves than its column has codes."""

    code = "invalid-hierarchy"
    exit_code = 5


class InvalidConstraint(HoldfastError, ValueError):
    """A kept total names nothing, cannot be read, or does not fit the table."""

    code = "invalid-constraint"
    exit_code = 6


class ContradictingTotals(InvalidConstraint):
    """Declared values of kept totals disagree; the message names rows that cancel while their values do not."""

    code = "contradicting-totals"


class NothingLeft(InvalidConstraint):
    """The kept totals fix every cell: no other table agrees with them, so nothing is left to protect."""

    code = "nothing-left"


class OutsideBounds(InvalidConstraint):
    """The table does not lie within the bounds that a mechanism is conditioned on; the message tells neither where nor by how much."""

    code = "outside-bounds"


class NoTableWithin(InvalidConstraint):
    """No table has the published totals and lies within the bounds; the message names bounds and totals that cannot go together."""

    code = "no-table-within"


class NotAcknowledged(InvalidConstraint):
    """The kept totals fix cells, whose true counts would be published, and `allow_exposed` says another number of them."""

    code = "not-acknowledged"


class NoExactSampler(HoldfastError):
    """No exact sampler draws this law in reasonable time; the message names the mechanisms that would."""

    code = "no-exact-sampler"
    exit_code = 8
    alone: str | None = None
    """Why it is refused, without the mechanisms that would do: for a comparison, which shows these itself."""


class ChainProblem(HoldfastError):
    """A Markov chain cannot be used for this."""

    code = "chain-problem"
    exit_code = 13


class UnreachableLattice(ChainProblem):
    """The moves do not generate the lattice; the message names a direction that they miss."""

    code = "unreachable-lattice"


class NoMeeting(ChainProblem):
    """Coupled chains did not meet before the cap, so that nothing is known about how far the chain is from its law."""

    code = "no-meeting"


class InvalidRun(HoldfastError, ValueError):
    """A run file cannot be read, or asks for something that does not exist; the message names file, field and line."""

    code = "invalid-run"
    exit_code = 7
    text = ""
    """What is wrong, without file, line and field."""


class OutputProblem(HoldfastError):
    """A folder cannot be written; nothing is left behind."""

    code = "output-problem"
    exit_code = 9


class OutputExists(OutputProblem):
    """The output's name is taken already."""

    code = "output-exists"


class IdenticalRelease(OutputProblem):
    """The very same release already exists; drawing it again would publish a second noisy copy."""

    code = "identical-release"


class VerificationFailed(HoldfastError):
    """A published folder is not what its card says; the message lists every difference found."""

    code = "verification-failed"
    exit_code = 10


class InvariantBroken(HoldfastError):
    """A kept total did not come out exactly. This is a fault of ours: nothing was written; please report it."""

    code = "invariant-broken"
    exit_code = 11


class LedgerProblem(HoldfastError):
    """A ledger cannot be opened or used."""

    code = "ledger-problem"
    exit_code = 12


class WouldBeRefused(LedgerProblem):
    """A plan was made and shown, and the ledger would refuse its release."""

    code = "would-be-refused"
    exit_code = 14


class NoGrant(LedgerProblem):
    """No budget was granted for this data set, or none of a kind that pays for this mechanism."""

    code = "no-grant"


class BudgetExceeded(LedgerProblem):
    """The release would cost more than what is left of the grant; nothing was spent."""

    code = "budget-exceeded"


class WrongState(LedgerProblem):
    """A step that does not follow the release's last step in the ledger."""

    code = "wrong-state"


class OtherInput(LedgerProblem):
    """A release is resumed on other data, or by another version of the streams, than it was begun with."""

    code = "other-input"


class LedgerBroken(LedgerProblem):
    """The chain of a ledger was changed, cut or reordered, or a card's entry is not in it."""

    code = "ledger-broken"


class WitnessMismatch(LedgerBroken):
    """The ledger is not the one that was seen here before: put back to an older copy, written anew, gone or exchanged."""

    code = "witness-mismatch"


class NoWitness(LedgerProblem):
    """There is no place outside the ledger in which its head could be remembered."""

    code = "no-witness"


class WrongUse(HoldfastError):
    """The command line itself was used wrongly: an unknown command or option, or one that is missing."""

    code = "wrong-use"
    exit_code = 2


class Stopped(HoldfastError):
    """A command was stopped with Ctrl-C; the message says what the ledger has recorded."""

    code = "stopped"
    exit_code = 130


class Terminated(Stopped):
    """A command was stopped by SIGTERM; otherwise as for Ctrl-C."""

    code = "terminated"
    exit_code = 143


class InternalError(HoldfastError):
    """Something that nobody foresaw: a fault of ours. The command line says so in one sentence; `--debug` shows the traceback."""

    code = "internal-error"
    exit_code = 70


class OutOfMemory(InternalError):
    """Memory ran out where nobody foresaw it; the message says what the ledger has recorded."""

    code = "out-of-memory"
    exit_code = 71


class AfterPublication(HoldfastError):
    """The release is published and charged; its message could not be written, or its entry in the ledger could not be closed."""

    code = "after-publication"
    exit_code = 20


class MessageNotWritten(HoldfastError):
    """A command did its work, and what it had to say could not be written to standard output."""

    code = "message-not-written"
    exit_code = 74


class HoldfastWarning(UserWarning):
    """Something legal that deserves a second look, such as kept totals that leave little to protect."""
