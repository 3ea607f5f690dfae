"""Cluster metadata as pure values: records → draft → image → delta. No clock, socket or file."""
