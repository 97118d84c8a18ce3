"""What is printed for usage errors and bugs: the right words, a report."""
