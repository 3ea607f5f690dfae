"""Requests from their arrival to their answer, and the jobs between."""
