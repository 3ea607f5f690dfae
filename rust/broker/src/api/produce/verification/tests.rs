//! Transactions at the produce handler.
