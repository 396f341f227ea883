; What the captures mean is said in grammars/queries.py.

(table "]" @scope.open) @scope @container
(table_array_element "]]" @scope.open) @scope @container
(pair) @member

(comment) @comment
(string) @string
