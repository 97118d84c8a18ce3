"""Rules for the objects that an overlay renders."""
