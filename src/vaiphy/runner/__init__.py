"""From settings to a finished analysis: steps, checkpoints, the log, and `vaiphy.run` itself."""
