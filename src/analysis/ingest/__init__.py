"""What other people's logs, counters and curves say of speculation, what they leave open, and what may be wrong."""
