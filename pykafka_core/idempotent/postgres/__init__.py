"""A ledger in PostgreSQL (`ledger.py`); rows and ids go to the server by binary COPY (`binary_copy.py`)."""
