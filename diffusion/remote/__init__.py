"""Fills by a server that somebody named in a profile. No torch in this process.

settings     what a profile says of its server; the key
connection   HTTP to it: TLS, time-outs, retries, one sentence for every failure
bridge       from the scheduler's threads to coroutines
forms        how each kind of server is asked and how it answers
prompts      instructions for chat models: fill the middle, write a selection anew
engine       a loaded server as the scheduler sees it: probing, deadlines, candidates
openai       the backend for autoregressive models: FIM servers, llama.cpp, Ollama, chat
vllm         the backend for DiffusionGemma on vLLM: our canvases and pins
"""
