"""The APIs of authentication and authorization."""
