"""Everything tree-sitter. Pure: text in, spans out. Knows neither LSP nor the model.

`languages.language_for` picks a language, `parser.ParsedDocument` holds a text and its tree, and
`syntax.context` says what a cursor in it stands in.
"""
