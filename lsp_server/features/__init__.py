"""The LSP features, one file each: they turn params into questions to the pipeline and its answers into results."""
