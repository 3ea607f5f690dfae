"""``consume``: print the records of a topic, without a group or as a member of one."""
