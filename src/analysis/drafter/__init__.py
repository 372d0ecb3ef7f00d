"""Training a DSpark drafter for the local target: data, model, training, evaluation, export.

Only `shapes`, `text` and `prompts` work without torch. The other modules import it through `torchlib`, which says
in one line what to install.
"""
