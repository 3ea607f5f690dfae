"""A ledger in a Delta Lake table: `ledger.py` opens with how."""
