"""What a broker tells about itself: to Prometheus, to health checks, and to who asks why a group is stuck."""
