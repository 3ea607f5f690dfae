"""The deadlines of transactions and transactional ids."""
