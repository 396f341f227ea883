; What the captures mean is said in grammars/queries.py.

(function_declaration body: (block "{" @scope.open)) @scope
(method_declaration body: (block "{" @scope.open)) @scope
(short_var_declaration right: (expression_list (func_literal body: (block "{" @scope.open)))) @scope
(var_declaration (var_spec value: (expression_list (func_literal body: (block "{" @scope.open))))) @scope

(type_declaration
  (type_spec type: (struct_type (field_declaration_list "{" @scope.open)))) @scope @container
(type_declaration (type_spec type: (interface_type "{" @scope.open))) @scope @container

(field_declaration) @member
(method_elem) @member
(type_declaration (type_alias)) @member

(import_declaration) @import

(comment) @comment
(interpreted_string_literal) @string
(raw_string_literal) @string
(rune_literal) @string
