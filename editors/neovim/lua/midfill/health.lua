--- `:checkhealth midfill`: this Neovim, the program, the server of this buffer, the keys.

local server = require('midfill.server')

local M = {}

local function check_neovim()
  vim.health.start('Neovim')
  if vim.fn.has('nvim-0.11') == 0 then
    vim.health.error('midfill needs Neovim 0.11 or newer')
    return
  end
  local ghost = require('midfill.ghost')
  local whose = ghost.NAMESPACE == 'midfill.ghost' and "midfill's own" or "Neovim's own"
  vim.health.ok(('%s, ghost text is %s'):format(tostring(vim.version()), whose))
end

local function check_program()
  vim.health.start('program')
  local program = server.program()
  if not program then
    vim.health.info('`cmd` is a function: it cannot be looked at')
    return
  end
  if vim.fn.executable(program[1] or '') == 0 then
    vim.health.error(('%s cannot be run'):format(program[1] or '`cmd`'), {
      'install it: pipx install .',
      "or name it: require('midfill').setup({ cmd = '/path/to/midfill' })",
    })
    return
  end
  local ended = vim.system(vim.list_extend(program, { '--version' }), { text = true }):wait()
  if ended.code == 0 then
    vim.health.ok(('%s: %s'):format(vim.fn.exepath(program[1]), vim.trim(ended.stdout)))
  else
    vim.health.error(('%s ends with %d: %s'):format(program[1], ended.code, vim.trim(ended.stderr)))
  end
end

local function check_server()
  vim.health.start('server')
  if not vim.lsp.is_enabled('midfill') then
    vim.health.warn('not enabled', { "call require('midfill').setup(), or vim.lsp.enable('midfill')" })
  end
  local clients = vim.lsp.get_clients({ name = 'midfill' })
  for _, client in ipairs(clients) do
    local buffers = vim.tbl_count(client.attached_buffers)
    vim.health.ok(('running for %d buffer%s'):format(buffers, buffers == 1 and '' or 's'))
  end
  if #clients == 0 then
    local filetypes = table.concat(vim.lsp.config.midfill.filetypes or { 'all' }, ', ')
    vim.health.info('not running: open a file of one of the types ' .. filetypes)
  end
  local status = vim.g.midfill_status
  if status then
    local bad = status.state == 'errored' or status.state == 'failed'
    local say = bad and vim.health.error or status.state == 'warning' and vim.health.warn or vim.health.info
    say(require('midfill.status').sentence(status))
  end
  vim.health.info('the server complains in ' .. vim.lsp.log.get_filename())
  vim.health.info('`midfill doctor` in a shell says how the engine and its model are')
end

local function check_keys()
  vim.health.start('keys')
  local keys = {}
  for _, mode in ipairs({ 'i', 'x', 'n' }) do
    for _, mapping in ipairs(vim.api.nvim_get_keymap(mode)) do
      local name = (mapping.desc or ''):match('^midfill: (.*)')
      if name then
        table.insert(keys, ('%s %s'):format(mapping.lhs, name))
      end
    end
  end
  vim.health.info(#keys > 0 and table.concat(keys, ', ') or 'none: see :help midfill-keys')
end

function M.check()
  check_neovim()
  check_program()
  check_server()
  check_keys()
end

return M
