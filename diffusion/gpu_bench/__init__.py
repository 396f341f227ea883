"""`midfill bench gpu`: memory and speed of a quantised model on a GPU, with random weights."""
