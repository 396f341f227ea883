; What the captures mean is said in grammars/queries.py.

(pair value: (object "{" @scope.open)) @scope @container
(pair value: (array "[" @scope.open)) @scope @container
(pair value: [(string) (number) (true) (false) (null)]) @member

(comment) @comment
(string) @string
