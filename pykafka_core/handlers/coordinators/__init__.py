"""What coordinators answer, as far as there are any."""
