"""The APIs that alter, describe and list configs of topics, brokers, groups and subscriptions."""
