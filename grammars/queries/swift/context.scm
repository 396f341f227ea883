; What the captures mean is said in grammars/queries.py.

(class_declaration body: (class_body "{" @scope.open)) @scope @container
(class_declaration body: (enum_class_body "{" @scope.open)) @scope @container
(protocol_declaration body: (protocol_body "{" @scope.open)) @scope @container

(function_declaration body: (function_body "{" @scope.open)) @scope
(init_declaration body: (function_body "{" @scope.open)) @scope
(deinit_declaration body: (function_body "{" @scope.open)) @scope
(property_declaration computed_value: (computed_property "{" @scope.open)) @scope

(class_body (property_declaration) @member)
(enum_entry) @member
(protocol_function_declaration) @member
(protocol_property_declaration) @member
(typealias_declaration) @member

(import_declaration) @import

(comment) @comment
(multiline_comment) @comment
(line_string_literal) @string
(multi_line_string_literal) @string
(raw_string_literal) @string
(interpolated_expression) @code
