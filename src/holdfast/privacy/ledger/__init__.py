"""The ledger: budgets granted, reserved and spent, in a file or a database, with a chain that shows when a row was changed.

What is counted. One data set has one account; vintages and revisions of one population share it. The unit of account is what one
person (or other unit) changing cell costs: the pair of tables at l1 distance 2 max_records, squared l2 distance 2 max_records^2.

What it protects against. Crashes at any moment, two processes that spend at once, a release drawn twice, a row that was changed, deleted,
inserted or moved, and, against heads printed in cards, a tail that was cut off.

What it does not protect against.
- Who can write the whole file or database can make a new chain of events from the first to the last. Only heads that were published, in
  cards, show it: they are no longer in the chain.
- Who has the file or the password of the database can add grants. They are then events like any other, with a name and a reason, and
  everyone who reads the ledger sees them.
- The noise key of an open release is as safe as the key of the user that seals it; the ledger only stores the sealed bytes. Closing a
  release deletes them. SQLite overwrites the place in its file; copies of the file, its freed journal on the disk, and PostgreSQL's own
  logs and dead rows may still hold them for a while.
- A release made without the ledger is not in it. Nor is one recorded in another: copies of a ledger, or of the folder that holds it, do
  not know of each other.
"""

from holdfast.privacy.ledger.account import Balance
from holdfast.privacy.ledger.chain import Event
from holdfast.privacy.ledger.embedded import NewLedger
from holdfast.privacy.ledger.ledger import Ledger
from holdfast.privacy.ledger.values import Charge, Grant, Reservation, largest_rho

__all__ = ["Balance", "Charge", "Event", "Grant", "Ledger", "NewLedger", "Reservation", "largest_rho"]
