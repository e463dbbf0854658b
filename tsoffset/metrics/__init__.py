"""What Prometheus is told of the daemon."""
