"""Fills by a server that somebody named in a profile. No torch in this process.

settings     what a profile says of its server; the key
connection   HTTP to it: TLS, time-outs, retries, one sentence for every failure
bridge       from the scheduler's threads to coroutines
work         what engine and backends hand to each other
engine       a server as the scheduler sees it: probing and deadlines

openai       the backend for autoregressive models: FIM servers, llama.cpp, Ollama, chat
forms        how each kind of them is asked and how it answers
prompts      instructions for chat models: fill the middle, write a selection anew

vllm         the backend for DiffusionGemma on vLLM: our canvases and pins
vllm_probe   what a vLLM server can do
canvases     which canvases it is asked to denoise, and which answer is the middle
texts        text to ids and back, by the server or by a local tokenizer
"""
