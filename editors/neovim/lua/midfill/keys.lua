--- Keys for what midfill does, as `setup` is told. A key that has nothing to do does what it did before.

local M = {}

--- In Insert mode: returns whether it had something to do.
---@type table<string, fun(): boolean>
local INSERT = {
  accept = function()
    return require('midfill').accept()
  end,
  accept_word = function()
    return require('midfill').accept_word()
  end,
  accept_line = function()
    return require('midfill').accept_line()
  end,
  next = function()
    return require('midfill').next()
  end,
  previous = function()
    return require('midfill').previous()
  end,
  ask = function()
    vim.schedule(require('midfill').ask)
    return true
  end,
}

--- On a selection and in Normal mode.
---@type table<string, {mode: string, command: string}>
local COMMANDS = {
  edit = { mode = 'x', command = ':Midfill edit<CR>' },
  fill = { mode = 'x', command = ':Midfill fill<CR>' },
  accept_edit = { mode = 'n', command = '<Cmd>Midfill accept<CR>' },
  retry_edit = { mode = 'n', command = '<Cmd>Midfill retry<CR>' },
  discard_edit = { mode = 'n', command = '<Cmd>Midfill discard<CR>' },
}

---@type table<string, string|string[]|false>
M.DEFAULTS = {
  accept = { '<Tab>', '<M-y>' },
  accept_word = '<M-w>',
  accept_line = '<M-l>',
  next = '<M-]>',
  previous = '<M-[>',
  ask = '<M-m>',
}

local OURS = 'midfill: '
local TAB = vim.keycode('<Tab>')

--- A tab indents, and goes through a menu.
local function is_needed(key)
  local before = vim.api.nvim_get_current_line():sub(1, vim.api.nvim_win_get_cursor(0)[2])
  return key == TAB and (vim.fn.pumvisible() == 1 or before:match('^%s*$') ~= nil)
end

--- The name of a mapping that does what a key does now.
---@param key string
---@return string
local function kept(key)
  local plug = ('<Plug>(midfill.before.%s)'):format(key:gsub('[<>]', ''))
  local raw = vim.keycode(key)
  local now = vim.iter(vim.api.nvim_get_keymap('i')):find(function(mapping)
    return mapping.lhsraw == raw or mapping.lhsrawalt == raw
  end)
  if not now then
    vim.keymap.set('i', plug, key)
  elseif not vim.startswith(now.desc or '', OURS) then
    now.lhs, now.lhsraw, now.lhsrawalt = plug, vim.keycode(plug), nil
    vim.fn.mapset('i', false, now)
  end
  return plug
end

---@param name string
---@param key string
local function map(name, key)
  local command = COMMANDS[name]
  if command then
    vim.keymap.set(command.mode, key, command.command, { desc = OURS .. name })
    return
  end
  local plug, raw = kept(key), vim.keycode(key)
  vim.keymap.set('i', key, function()
    return not is_needed(raw) and INSERT[name]() and '' or plug
  end, { expr = true, remap = true, desc = OURS .. name })
end

--- Map keys; false: none at all, or none for one of the names. Raises an error for an unknown name.
---@param keys? table<string, string|string[]|false>|boolean
function M.map(keys)
  if keys == false then
    return
  end
  for name, wanted in pairs(vim.tbl_extend('force', M.DEFAULTS, type(keys) == 'table' and keys or {})) do
    if not INSERT[name] and not COMMANDS[name] then
      local names = vim.list_extend(vim.tbl_keys(INSERT), vim.tbl_keys(COMMANDS))
      table.sort(names)
      error(('midfill: there is no key for %s; there are %s'):format(name, table.concat(names, ', ')), 0)
    end
    for _, key in ipairs(type(wanted) == 'table' and wanted or { wanted or nil }) do
      map(name, key)
    end
  end
end

return M
