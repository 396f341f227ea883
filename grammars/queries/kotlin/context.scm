; What the captures mean is said in grammars/queries.py.

(class_declaration (class_body "{" @scope.open)) @scope @container
(class_declaration (enum_class_body "{" @scope.open)) @scope @container
(object_declaration (class_body "{" @scope.open)) @scope @container
(companion_object (class_body "{" @scope.open)) @scope @container

(function_declaration (function_body (block "{" @scope.open))) @scope
(secondary_constructor (block "{" @scope.open)) @scope
(anonymous_initializer (block "{" @scope.open)) @scope
(getter (function_body (block "{" @scope.open))) @scope

(class_body (property_declaration) @member)
(source_file (property_declaration) @member)
(class_body (function_declaration) @member)
(source_file (function_declaration) @member)

(import) @import

(line_comment) @comment
(block_comment) @comment
(string_literal) @string
(multiline_string_literal) @string
(character_literal) @string
(interpolation) @code
