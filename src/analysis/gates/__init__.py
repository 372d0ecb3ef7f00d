"""Is this sample, cell or contrast fit to publish? One small class per concern; looks at records only."""
