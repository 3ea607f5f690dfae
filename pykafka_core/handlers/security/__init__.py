"""APIs about who may do what."""
