"""Settings of topics, brokers, groups and subscriptions: altered, described, listed."""
