; What the captures mean is said in grammars/queries.py.

(function_definition body: (compound_statement "{" @scope.open)) @scope

(command name: (command_name) @import.call) @import

(comment) @comment
(string) @string
(raw_string) @string
(ansi_c_string) @string
(heredoc_body) @string
(expansion) @code
(command_substitution) @code
