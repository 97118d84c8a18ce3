"""What a new cluster starts with, kept in the cache from an earlier one of the same programs."""
