(class_specifier body: (field_declaration_list "{" @scope.open)) @scope @container
(namespace_definition body: (declaration_list "{" @scope.open)) @scope @container
(init_declarator value: (lambda_expression body: (compound_statement "{" @scope.open))) @scope

(declaration declarator: (reference_declarator (function_declarator))) @member
(alias_declaration) @member

(using_declaration) @import

(raw_string_literal) @string
