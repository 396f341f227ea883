; What the captures mean is said in grammars/queries.py.

(class_declaration body: (class_body "{" @scope.open)) @scope @container
(record_declaration body: (class_body "{" @scope.open)) @scope @container
(interface_declaration body: (interface_body "{" @scope.open)) @scope @container
(enum_declaration body: (enum_body "{" @scope.open)) @scope @container
(annotation_type_declaration body: (annotation_type_body "{" @scope.open)) @scope @container

(method_declaration body: (block "{" @scope.open)) @scope
(constructor_declaration body: (constructor_body "{" @scope.open)) @scope
(compact_constructor_declaration body: (block "{" @scope.open)) @scope
(static_initializer (block "{" @scope.open)) @scope

(field_declaration) @member
(method_declaration !body) @member
(constant_declaration) @member

(import_declaration) @import

(line_comment) @comment
(block_comment) @comment
(string_literal) @string
(character_literal) @string
(string_interpolation) @code
