"""The APIs of transactional producers and their transactions."""
