"""The APIs of the group coordinator and of the transaction coordinator."""
