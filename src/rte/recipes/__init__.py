"""What the self-tuning method `auto` is made of; nobody else needs it.

policy     one pure function: what suits the noise and the length of a run, and the table of its constants
sampling   importance sampling: examples whose labels still have a gradient are seen more often
tuner      the state of a run that the policy is asked with
stages     networks that follow one another in a run, each taught by the one before
"""
