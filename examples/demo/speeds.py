"""The speed of a flight; it has its own file because other processes import it too."""

import json


def speed(flight: bytes) -> bytes:
    """Return a flight as JSON with its speed in miles per hour; null if it never landed."""
    fields = json.loads(flight)
    minutes = fields["air_time"]
    mph = None if not minutes else round(fields["distance"] * 60 / minutes)
    return json.dumps(
        {
            "flight": fields["flight"],
            "tailnum": fields["tailnum"],
            "time_hour": fields["time_hour"],
            "mph": mph,
        }
    ).encode()
