"""Members of the classic protocol in consumer groups: online migration of groups (KIP-848).

A classic group becomes a consumer group when the first member of the consumer protocol joins
(`upgrade`), and a classic group again when the last such member has left (`downgrade`). In between,
members of both protocols share the partitions, and the broker assigns them. A classic member still
sends JoinGroup, SyncGroup and Heartbeat, but is never the leader (`requests`). Each of its joins is
a step towards its target assignment, and the response to its sync contains its current assignment.
"""
