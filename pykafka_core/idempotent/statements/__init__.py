"""A statement as an effect: rows are in the temporary view ``staged`` of the ledger's transaction, SQL does the rest.

Theory of operation. The effect is called with the transaction's connection and a `pyarrow.Table`::

    columns and types            checked before anything is changed
    CREATE TEMPORARY TABLE       with the columns of the rows
    CREATE TEMPORARY VIEW        "staged", all of it; a statement that would change it meant another table, and fails
    the rows                     PostgreSQL: binary COPY; SQLite: executemany
    the statement                one; it cannot end the transaction
    DROP                         so that the next part of the transaction finds nothing

All of it is in the transaction, so a failure anywhere rolls it back with the ids and the marks. What is forbidden is
what would end the transaction early: `checks.py` knows the statements that are allowed by their first word, the
databases refuse a second statement in the text, and PostgreSQL refuses a procedure that commits.
"""
