"""The core cluster and what is applied to it and started for it by hand."""
