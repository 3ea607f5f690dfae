"""A ledger in a Delta Lake table; `ledger.py` documents how it works."""
