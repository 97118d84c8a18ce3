"""Commands that show what is there: status, doctor, logs, clusters, passwords."""
