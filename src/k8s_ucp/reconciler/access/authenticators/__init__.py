"""One authenticator for each way of proving who we are to an app cluster."""
