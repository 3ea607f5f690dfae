"""The group coordinator: classic groups, consumer groups and committed offsets, stored in
`__consumer_offsets`.
"""
