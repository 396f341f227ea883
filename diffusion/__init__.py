"""The model-facing half of midfill: requests in, filled middles out. Knows neither LSP nor any editor."""
