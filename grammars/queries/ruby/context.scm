; What the captures mean is said in grammars/queries.py.

(module name: (_) @scope.open) @scope @container
(class superclass: (_) @scope.open) @scope @container
(class name: (_) @scope.open !superclass) @scope @container

(method parameters: (_) @scope.open) @scope
(method name: (_) @scope.open !parameters) @scope
(singleton_method parameters: (_) @scope.open) @scope
(singleton_method name: (_) @scope.open !parameters) @scope

(class (body_statement (assignment left: (constant)) @member))
(class (body_statement (call method: (identifier) !receiver !block) @member))

(call method: (identifier) @import.call !receiver) @import

(comment) @comment
(string) @string
(chained_string) @string
(regex) @string
(subshell) @string
(string_array) @string
(symbol_array) @string
(delimited_symbol) @string
(heredoc_body) @string
(interpolation) @code
