"""What the response of a server may cost, whatever it sends: total seconds, and bytes."""
