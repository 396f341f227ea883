(field_definition
  value: [
    (arrow_function body: (statement_block "{" @scope.open))
    (function_expression body: (statement_block "{" @scope.open))
  ]) @scope
(field_definition) @member
