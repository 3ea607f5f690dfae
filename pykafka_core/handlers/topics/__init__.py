"""The APIs of topics and their partitions: creation, growth, deletion and placement."""
