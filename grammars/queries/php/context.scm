; What the captures mean is said in grammars/queries.py.

(namespace_definition body: (compound_statement "{" @scope.open)) @scope @container
(class_declaration body: (declaration_list "{" @scope.open)) @scope @container
(interface_declaration body: (declaration_list "{" @scope.open)) @scope @container
(trait_declaration body: (declaration_list "{" @scope.open)) @scope @container
(enum_declaration body: (enum_declaration_list "{" @scope.open)) @scope @container

(function_definition body: (compound_statement "{" @scope.open)) @scope
(method_declaration body: (compound_statement "{" @scope.open)) @scope
(assignment_expression right: (anonymous_function body: (compound_statement "{" @scope.open))) @scope

(property_declaration) @member
(const_declaration) @member
(method_declaration !body) @member

(namespace_use_declaration) @import
(expression_statement [
  (require_expression) (require_once_expression) (include_expression) (include_once_expression)
]) @import

(comment) @comment
(string) @string
(encapsed_string) @string
(heredoc) @string
(nowdoc) @string
