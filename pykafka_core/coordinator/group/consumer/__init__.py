"""Groups of the consumer protocol (KIP-848), whose coordinator assigns the partitions; one file for
each request.
"""
