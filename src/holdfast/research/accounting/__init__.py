"""What several promises come to together, and figures of the papers: for analysts. No release and no ledger calls it."""
