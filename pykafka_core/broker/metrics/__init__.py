"""Information about a broker: metrics for Prometheus, health checks, and explanations for groups
that wait.
"""
