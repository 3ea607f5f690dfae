"""A cluster of several brokers in one process, whose nodes can be killed, paused and cut off."""
