"""The control thread: events in, decisions, answers out."""
