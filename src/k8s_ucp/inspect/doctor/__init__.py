"""What is wrong with a topology, why, and what to type next: the data of `ucp doctor`."""
