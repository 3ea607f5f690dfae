"""The shards of the coordinators, and their requests to other nodes."""
