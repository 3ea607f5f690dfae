"""Classic groups: members join, the leader assigns partitions, members sync.

One file for each request.
"""
