"""The handlers of the APIs that Python serves: one file per API.

A handler turns a request into a response, or into records or commands and a response.
"""
