--- What a configuration may call: setting up, taking ghost text, asking, the state for status lines.

local ghost = require('midfill.ghost')

local M = {}

---@class midfill.Options
---@field cmd? string|string[] the program, or the whole command that starts the server
---@field filetypes? string[]
---@field settings? table<string, any> as in the table of settings
---@field keys? table<string, string|string[]|false>|false see keys.lua

---@type table<string, string[]>
local OPTIONS = {
  cmd = { 'string', 'table' },
  filetypes = { 'table' },
  settings = { 'table' },
  keys = { 'table', 'boolean' },
}

--- Start midfill where there are files for it, and map keys.
---@param options? midfill.Options
function M.setup(options)
  if vim.fn.has('nvim-0.11') == 0 then
    error('midfill needs Neovim 0.11 or newer', 0)
  end
  options = options or {}
  for name, value in pairs(options) do
    if not OPTIONS[name] then
      local names = vim.tbl_keys(OPTIONS)
      table.sort(names)
      error(('midfill: setup has no option %s; there are %s'):format(name, table.concat(names, ', ')), 0)
    end
    vim.validate(name, value, OPTIONS[name])
  end
  local cmd = options.cmd
  vim.lsp.config('midfill', {
    cmd = type(cmd) == 'string' and { vim.fs.normalize(cmd), 'lsp' } or cmd,
    filetypes = options.filetypes,
    settings = options.settings and { midfill = options.settings },
  })
  require('midfill.keys').map(options.keys)
  vim.lsp.enable('midfill')
end

--- Accept the ghost text.
---@return boolean # whether there was ghost text
function M.accept()
  return ghost.accept(function(rest)
    return rest
  end)
end

--- Accept the next word of the ghost text.
---@return boolean
function M.accept_word()
  return ghost.accept(function(rest)
    return rest:match('^%s*[%w_\128-\255]+') or rest:match('^%s*[^%w_%s\128-\255]+') or rest
  end)
end

--- Accept the ghost text up to the end of its next line.
---@return boolean
function M.accept_line()
  return ghost.accept(function(rest)
    return rest:match('^\n*[^\n]+') or rest
  end)
end

--- Ask explicitly: the server takes more time, offers several candidates and holds none back.
function M.ask()
  ghost.ask()
end

--- Show the next candidate.
---@return boolean # whether there was ghost text
function M.next()
  return ghost.select(1)
end

--- Show the candidate before.
---@return boolean
function M.previous()
  return ghost.select(-1)
end

--- "midfill: loading 40%", ": ready", ": busy", ": off", ": warning" ... and nothing where midfill is not attached.
---@return string
function M.statusline()
  local status = vim.g.midfill_status
  if not status or (status.state ~= 'failed' and not require('midfill.server').of()) then
    return ''
  end
  return 'midfill: ' .. require('midfill.status').word(status)
end

return M
