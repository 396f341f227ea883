; What the captures mean is said in grammars/queries.py.

(rule_set (block "{" @scope.open)) @scope
(media_statement (block "{" @scope.open)) @scope @container
(supports_statement (block "{" @scope.open)) @scope @container
(keyframes_statement (keyframe_block_list "{" @scope.open)) @scope @container
(keyframe_block (block "{" @scope.open)) @scope
(at_rule (block "{" @scope.open)) @scope @container

(import_statement) @import

(comment) @comment
(string_value) @string
