; What the captures mean is said in grammars/queries.py.

(block_mapping_pair ":" @scope.open value: (block_node)) @scope @container
(block_mapping_pair ":" @scope.open !value) @scope @container
(block_mapping_pair value: (flow_node)) @member

(comment) @comment
(double_quote_scalar) @string
(single_quote_scalar) @string
(block_scalar) @string
