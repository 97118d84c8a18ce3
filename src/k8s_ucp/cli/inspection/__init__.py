"""Commands that show the state: status, doctor, logs, clusters, passwords."""
