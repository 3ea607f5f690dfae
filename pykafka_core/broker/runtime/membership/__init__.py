"""A node as one of several: how it joins the cluster, stays in it, and has the active controller decide."""
