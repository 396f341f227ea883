; What the captures mean is said in grammars/queries.py.

(section (atx_heading) @scope.open) @scope @container
(section (setext_heading) @scope.open) @scope @container
