; What the captures mean is said in grammars/queries.py.

(class_definition ":" @scope.open) @scope @container
(function_definition ":" @scope.open) @scope

(class_definition
  body: (block (expression_statement (assignment)) @member))

(import_statement) @import
(import_from_statement) @import
(future_import_statement) @import

(comment) @comment
(string) @string
(interpolation) @code
