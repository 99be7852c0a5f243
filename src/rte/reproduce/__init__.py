"""Every table and figure of the paper as one command. `tables` holds the experiments as data, at both sizes.

define.py  what a table is        plan.py    settings and run folders of its cells    runner.py   train what is missing
cost.py    what that will take    measure.py numbers beyond accuracy, after training  summary.py  results/TABLE.json
"""
