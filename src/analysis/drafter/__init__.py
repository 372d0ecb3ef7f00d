"""Training a DSpark drafter for the local target: data, model, training, evaluation, export."""
