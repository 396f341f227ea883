; What the captures mean is said in grammars/queries.py.

(function_item body: (block "{" @scope.open)) @scope
(let_declaration value: (closure_expression body: (block "{" @scope.open))) @scope

(mod_item body: (declaration_list "{" @scope.open)) @scope @container
(struct_item body: (field_declaration_list "{" @scope.open)) @scope @container
(union_item body: (field_declaration_list "{" @scope.open)) @scope @container
(enum_item body: (enum_variant_list "{" @scope.open)) @scope @container
(trait_item body: (declaration_list "{" @scope.open)) @scope @container
(impl_item body: (declaration_list "{" @scope.open)) @scope @container

(field_declaration) @member
(enum_variant) @member
(function_signature_item) @member
(const_item) @member
(type_item) @member

(use_declaration) @import
(extern_crate_declaration) @import

(line_comment) @comment
(block_comment) @comment
(string_literal) @string
(raw_string_literal) @string
(char_literal) @string
