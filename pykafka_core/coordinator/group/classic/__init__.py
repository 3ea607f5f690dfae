"""Classic groups: members join, a leader among them assigns, everybody syncs. A file for each request."""
