"""The editor-facing process: documents, syntax, cache, filters. It loads no model and opens no network connection."""
