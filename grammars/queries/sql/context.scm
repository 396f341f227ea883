; What the captures mean is said in grammars/queries.py.

(create_table (column_definitions "(" @scope.open)) @scope @container
(column_definition) @member
(create_function (function_arguments) @scope.open) @scope
(create_view (keyword_as) @scope.open) @scope

(comment) @comment
(marginalia) @comment
(literal) @string.quoted
