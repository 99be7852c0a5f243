"""Population based training on Ray Tune.

space      which settings are searched, and where, read from their declarations
decide     the rule: who inherits from whom, and what becomes of the values; pure functions of the seed
population the state of a search: intervals that are done, intervals that can start now
schedule   the values along the winner's lineage, as a file that `rte fit --schedule` replays
definition what a search was asked to do, and its folder
interval   what a worker does: one interval of one member
cluster    Ray itself: started here or joined, kept quiet
pbt        the search: Ray Tune gets one trial per interval; at the end, an ordinary run folder
"""
