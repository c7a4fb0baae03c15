"""What people read: the statement for sign-off and the report."""
