"""Effects that are SQL statements: the rows are in the temporary view ``staged``.

Theory of operation. The effect is called with the transaction's connection and a `pyarrow.Table`::

    columns and types            checked before anything is changed
    CREATE TEMPORARY TABLE       with the columns of the rows
    CREATE TEMPORARY VIEW        "staged", which is read-only: a statement that would change it
                                 was meant for another table, and fails
    the rows                     PostgreSQL: binary COPY; SQLite: executemany
    the statement                exactly one; it cannot end the transaction
    DROP                         so that the next part of the transaction sees no old rows

All of it is in the transaction, so any failure rolls it back together with ids and marks. To keep
the transaction open, `checks.py` allows only statements with certain first words, the databases
reject a second statement in the text, and PostgreSQL rejects a procedure that commits.
"""
