"""What is printed if a command fails: the error, the words that were meant, a report of a bug."""
