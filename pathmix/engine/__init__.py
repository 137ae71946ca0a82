"""What everything runs on: precision, compiled functions, batches, threads, progress."""
