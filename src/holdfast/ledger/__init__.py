"""The ledger: budgets granted, reserved and spent, in a file or a database, with a chain that shows when a row was changed.

What is counted. One data set has one account; vintages and revisions of one population share it. The unit of account is what one
person (or what is protected) changing cell costs: the pair of tables at l1 distance 2 max_records, squared l2 distance 2 max_records^2.

What it protects against. Crashes at any moment, two processes that spend at once, a release drawn twice, a row that was changed, deleted,
inserted or moved, and, against the head that a witness outside the ledger remembers and against heads printed in cards, a tail that was cut
off: an older copy that was put back, a ledger that was deleted or exchanged.

What it does not protect against.
- Who can write the whole file or database, and all witnesses, can make a new chain of events from the first to the last. Only heads that
  were published, in cards, show it: they are no longer in the chain.
- Who has the file or the password of the database can add grants. They are then events like any other, with a name and a reason, and
  everyone who reads the ledger sees them.
- The noise key of an open release is sealed under two secrets, the user's and one in a file of the state folder. What draws the noise again
  never all passes through the ledger: old pages and logs of a database do not tell it once that file is destroyed, at the close. What
  destroying a file on a disk can do is said in state.py.
- A release made without the ledger is not in it. Nor is one recorded in another: copies of a ledger, or of the folder that holds it, do
  not know of each other.
"""

from holdfast.ledger.chain import Event
from holdfast.ledger.embedded import NewLedger
from holdfast.ledger.ledger import Ledger
from holdfast.ledger.releases import ReleaseFacts, Reservation
from holdfast.ledger.values import Balance, Charge, Grant, largest_rho

__all__ = ["Balance", "Charge", "Event", "Grant", "Ledger", "NewLedger", "ReleaseFacts", "Reservation", "largest_rho"]
