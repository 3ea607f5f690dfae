"""The transaction coordinator: producers' transactional ids and their transactions, kept in `__transaction_state`."""
