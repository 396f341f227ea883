--- Ghost text, whatever this Neovim draws it with. The only place that looks which Neovim it is.

local M = {}

---@class midfill.Painter What there is for each version of Neovim. `accept`, `ask`, `select` are for the current buffer.
---@field PAUSE integer milliseconds that it waits after a key before it asks
---@field NAMESPACE string of its extmarks
---@field attach fun(client: vim.lsp.Client, buffer: integer)
---@field detach fun(buffer: integer)
---@field accept fun(take: fun(rest: string): string): boolean whether there is ghost text; the text changes soon
---@field ask fun()
---@field select fun(count: integer)

---@type midfill.Painter
local painter = require(vim.lsp.inline_completion and 'midfill.native' or 'midfill.extmarks')

M.PAUSE = painter.PAUSE
M.NAMESPACE = painter.NAMESPACE
M.attach = painter.attach
M.detach = painter.detach
M.ask = painter.ask

--- Whether there is ghost text in the current buffer.
---@return boolean
function M.is_shown()
  local namespace = vim.api.nvim_get_namespaces()[M.NAMESPACE]
  return namespace ~= nil and #vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { limit = 1 }) > 0
end

--- Accept what `take` returns of the ghost text.
---@param take fun(rest: string): string
---@return boolean # whether there is ghost text
function M.accept(take)
  return M.is_shown() and painter.accept(take)
end

--- Show the next candidate, or the one that is `count` further on.
---@param count integer
---@return boolean # whether there is ghost text
function M.select(count)
  local shown = M.is_shown()
  if shown then
    painter.select(count)
  end
  return shown
end

--- Ask again, as if a key had been pressed.
---@param buffer integer
function M.again(buffer)
  if vim.api.nvim_get_current_buf() == buffer and vim.api.nvim_get_mode().mode:match('^[iR]') then
    vim.api.nvim_exec_autocmds('CursorMovedI', { buffer = buffer })
  end
end

return M
