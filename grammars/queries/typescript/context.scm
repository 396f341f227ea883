(abstract_class_declaration body: (class_body "{" @scope.open)) @scope @container
(interface_declaration body: (interface_body "{" @scope.open)) @scope @container
(enum_declaration body: (enum_body "{" @scope.open)) @scope @container
(internal_module body: (statement_block "{" @scope.open)) @scope @container
(module body: (statement_block "{" @scope.open)) @scope @container

(public_field_definition
  value: [
    (arrow_function body: (statement_block "{" @scope.open))
    (function_expression body: (statement_block "{" @scope.open))
  ]) @scope

(public_field_definition) @member
(property_signature) @member
(method_signature) @member
(abstract_method_signature) @member
(function_signature) @member
(type_alias_declaration) @member

(template_literal_type) @string
(template_type) @code
