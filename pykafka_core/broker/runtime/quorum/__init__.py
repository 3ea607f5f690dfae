"""A replica of the metadata quorum on a node: its log, its messages, its clock, and its committed
batches.
"""
