"""A ledger in PostgreSQL (`ledger.py`); rows and ids are sent by binary COPY (`binary_copy.py`)."""
