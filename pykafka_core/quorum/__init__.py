"""Who decides that metadata records are committed."""
