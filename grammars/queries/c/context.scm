; Shared by C and C++. What the captures mean is said in grammars/queries.py.

(function_definition body: (compound_statement "{" @scope.open)) @scope

(struct_specifier body: (field_declaration_list "{" @scope.open)) @scope @container
(union_specifier body: (field_declaration_list "{" @scope.open)) @scope @container
(enum_specifier body: (enumerator_list "{" @scope.open)) @scope @container

(field_declaration) @member
(declaration declarator: (function_declarator)) @member
(declaration declarator: (pointer_declarator (function_declarator))) @member

(preproc_include) @import

(comment) @comment
(string_literal) @string
(char_literal) @string
(system_lib_string) @string
