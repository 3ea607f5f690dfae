"""Members of the classic protocol in consumer groups: how a group changes its kind while it lives (KIP-848).

A classic group becomes a consumer group when its first member of the consumer protocol joins (`upgrade`), and a
classic one again when the last of them is gone (`downgrade`); meanwhile its members of both protocols share its
partitions, and the broker assigns them. A classic member goes on as it was: it joins, syncs and beats, without ever
leading (`requests`). Each of its joins is a step towards its target assignment, and its sync tells what it has by then.
"""
