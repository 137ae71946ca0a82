"""What a command's exit status says."""

OK = 0
ERROR = 1  # something is wrong with the model, the data, the options or the files
USAGE = 2  # the command line itself cannot be understood
NOT_SETTLED = 3  # fitted, but the verdict is not ok
INTERRUPTED = 130  # by Ctrl-C; what was reached is kept
BROKEN_PIPE = 141  # whoever read the output went away
