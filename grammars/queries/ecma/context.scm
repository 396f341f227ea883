; Shared by JavaScript and TypeScript. What the captures mean is said in grammars/queries.py.

(class_declaration body: (class_body "{" @scope.open)) @scope @container
(class body: (class_body "{" @scope.open)) @scope @container

(function_declaration body: (statement_block "{" @scope.open)) @scope
(generator_function_declaration body: (statement_block "{" @scope.open)) @scope
(method_definition body: (statement_block "{" @scope.open)) @scope

; Also what an unclosed declaration is taken for.
(function_expression
  name: (identifier)
  body: (statement_block "{" @scope.open)) @scope

; A function that has a name because it is bound to one.
(lexical_declaration
  (variable_declarator
    value: [
      (arrow_function body: (statement_block "{" @scope.open))
      (function_expression body: (statement_block "{" @scope.open))
      (generator_function body: (statement_block "{" @scope.open))
    ])) @scope
(variable_declaration
  (variable_declarator
    value: [
      (arrow_function body: (statement_block "{" @scope.open))
      (function_expression body: (statement_block "{" @scope.open))
    ])) @scope
(assignment_expression
  right: [
    (arrow_function body: (statement_block "{" @scope.open))
    (function_expression body: (statement_block "{" @scope.open))
  ]) @scope
(pair
  value: [
    (arrow_function body: (statement_block "{" @scope.open))
    (function_expression body: (statement_block "{" @scope.open))
  ]) @scope

(import_statement) @import
(export_statement source: (string)) @import
(lexical_declaration
  (variable_declarator value: (call_expression function: (identifier) @import.call))) @import
(variable_declaration
  (variable_declarator value: (call_expression function: (identifier) @import.call))) @import

(comment) @comment
(string) @string
(template_string) @string
(regex) @string
(template_substitution) @code
