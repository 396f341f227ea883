--- `:Midfill SUBCOMMAND`: a table from names to functions.

local M = {}

---@type table<string, fun(command: {range: integer, line1: integer, line2: integer}, rest: string)>
M.subcommands = {
  edit = function(command, rest)
    local edits = require('midfill.edits')
    local buffer, range = vim.api.nvim_get_current_buf(), edits.range_of(command)
    if rest ~= '' then
      edits.start(buffer, range, rest)
      return
    end
    vim.ui.input({ prompt = 'midfill: what to change? ' }, function(instruction)
      if instruction and instruction:match('%S') then
        edits.start(buffer, range, instruction)
      end
    end)
  end,
  fill = function(command)
    local edits = require('midfill.edits')
    edits.start(vim.api.nvim_get_current_buf(), edits.range_of(command), nil)
  end,
  accept = function()
    if not require('midfill.edits').accept() then
      require('midfill').say('there is no edit to accept')
    end
  end,
  discard = function()
    require('midfill.edits').discard()
  end,
  retry = function()
    if not require('midfill.edits').retry() then
      require('midfill').say('there is no edit to ask for again')
    end
  end,
  why = function()
    require('midfill').why()
  end,
}

---@param command {args: string, range: integer, line1: integer, line2: integer}
function M.run(command)
  local name, rest = command.args:match('^%s*(%S+)%s*(.-)%s*$')
  local subcommand = M.subcommands[name]
  if not subcommand then
    require('midfill').say(('no subcommand %s; there are %s'):format(name, table.concat(M.complete(''), ', ')))
    return
  end
  subcommand(command, rest)
end

---@param lead string
---@return string[]
function M.complete(lead)
  local names = vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, vim.tbl_keys(M.subcommands))
  table.sort(names)
  return names
end

return M
