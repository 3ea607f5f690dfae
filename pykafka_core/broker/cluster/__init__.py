"""Several brokers in one process as one cluster, whose nodes can be killed, paused and cut off."""
