"""The APIs that alter and describe client quotas."""
