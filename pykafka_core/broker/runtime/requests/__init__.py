"""Requests from their arrival to their response, and the jobs that handle them."""
