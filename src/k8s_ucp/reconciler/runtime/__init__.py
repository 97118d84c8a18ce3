"""What every controller runs on: watches, work queues, leadership, conditions, metrics, logs."""
