"""One authenticator for each way of authenticating to an app cluster."""
