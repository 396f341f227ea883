; What the captures mean is said in grammars/queries.py.

(function_declaration parameters: (parameters) @scope.open) @scope
(variable_declaration
  (assignment_statement
    (expression_list value: (function_definition parameters: (parameters) @scope.open)))) @scope
(assignment_statement
  (expression_list value: (function_definition parameters: (parameters) @scope.open))) @scope

(variable_declaration
  (assignment_statement
    (expression_list value: (function_call name: (identifier) @import.call)))) @import
(chunk (function_call name: (identifier) @import.call) @import)

(comment) @comment
(string) @string
