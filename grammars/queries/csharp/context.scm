; What the captures mean is said in grammars/queries.py.

(namespace_declaration body: (declaration_list "{" @scope.open)) @scope @container
(class_declaration body: (declaration_list "{" @scope.open)) @scope @container
(struct_declaration body: (declaration_list "{" @scope.open)) @scope @container
(record_declaration body: (declaration_list "{" @scope.open)) @scope @container
(interface_declaration body: (declaration_list "{" @scope.open)) @scope @container
(enum_declaration body: (enum_member_declaration_list "{" @scope.open)) @scope @container

(method_declaration body: (block "{" @scope.open)) @scope
(constructor_declaration body: (block "{" @scope.open)) @scope
(destructor_declaration body: (block "{" @scope.open)) @scope
(operator_declaration body: (block "{" @scope.open)) @scope
(local_function_statement body: (block "{" @scope.open)) @scope
(accessor_declaration body: (block "{" @scope.open)) @scope

(field_declaration) @member
(property_declaration) @member
(event_field_declaration) @member
(method_declaration !body) @member

(using_directive) @import

(comment) @comment
(string_literal) @string
(verbatim_string_literal) @string
(raw_string_literal) @string
(interpolated_string_expression) @string
(character_literal) @string
(interpolation) @code
