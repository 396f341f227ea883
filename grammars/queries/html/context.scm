; What the captures mean is said in grammars/queries.py.

(element (start_tag ">" @scope.open)) @scope @container
(script_element (start_tag ">" @scope.open)) @scope
(style_element (start_tag ">" @scope.open)) @scope
(element (self_closing_tag)) @member

(comment) @comment
(quoted_attribute_value) @string
