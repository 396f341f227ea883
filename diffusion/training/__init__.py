"""What makes the embedded model: corpus, tokenizer, examples, objective, trainer. Never imported to serve."""
