--- The server of a buffer and the program that it comes from: found, asked, restarted, set.

local say = require('midfill.say')

local M = {}

---@param buffer? integer
---@return vim.lsp.Client?
function M.of(buffer)
  return vim.lsp.get_clients({ name = 'midfill', bufnr = buffer or 0 })[1]
end

--- The same; where there is none, that is said.
---@param buffer? integer
---@return vim.lsp.Client?
function M.wanted(buffer)
  local client = M.of(buffer)
  if not client then
    say.warning('not attached to this buffer (see :checkhealth midfill)')
  end
  return client
end

--- Ask for something about the current document. What goes wrong is said, and not passed on.
---@param method string
---@param params table
---@param done fun(result: any)
function M.ask(method, params, done)
  local client = M.wanted()
  if not client then
    return
  end
  client:request(method, params, function(err, result)
    if err then
      say.warning(err.message)
    else
      done(result)
    end
  end, vim.api.nvim_get_current_buf())
end

---@param method string
---@param done fun(result: any)
function M.ask_about_document(method, done)
  M.ask(method, { textDocument = vim.lsp.util.make_text_document_params() }, done)
end

---@param command string
---@param arguments any[]
---@param done fun(result: any)
function M.execute(command, arguments, done)
  M.ask('workspace/executeCommand', { command = command, arguments = arguments }, done)
end

--- The program that `cmd` of the configuration starts, without what makes a language server of it.
---@return string[]?
function M.program()
  local cmd = vim.lsp.config.midfill.cmd
  if type(cmd) ~= 'table' then
    return nil
  end
  return vim.iter(cmd):take(vim.fn.index(cmd, 'lsp')):totable()
end

--- Run `midfill ARGUMENTS`. Its output is passed on, or what it complains about is said.
---@param arguments string[]
---@param done fun(output: string)
function M.run(arguments, done)
  local program = M.program()
  if not program or vim.fn.executable(program[1] or '') == 0 then
    say.warning('the program cannot be run (see :checkhealth midfill)')
    return
  end
  vim.system(vim.list_extend(program, arguments), { text = true }, vim.schedule_wrap(function(ended)
    if ended.stdout ~= '' then -- Also the state of an engine that does not run, which counts as a failure.
      done(ended.stdout)
    else
      say.warning(vim.trim(ended.stderr):gsub('^midfill: ', ''))
    end
  end))
end

local restarting = false

--- End the engine of all windows, then the servers of this Neovim, and start anew.
function M.restart()
  local clients = vim.lsp.get_clients({ name = 'midfill' })
  restarting = #clients > 0
  if not restarting then
    M.start()
    return
  end
  local restart = { command = 'midfill.restart' }
  clients[1]:request('workspace/executeCommand', restart, function()
    for _, client in ipairs(clients) do
      client:stop()
    end
  end)
end

--- Start a server for every buffer that is of one of the file types.
function M.start()
  vim.lsp.enable('midfill')
end

--- A server has ended.
function M.ended()
  local running = vim.iter(vim.lsp.get_clients({ name = 'midfill' })):any(function(client)
    return not client:is_stopped()
  end)
  if restarting and not running then
    restarting = false
    M.start()
  end
end

--- Set something, for the servers that run and for those to come.
---@param settings table<string, any>
function M.set(settings)
  vim.lsp.config('midfill', { settings = { midfill = settings } })
  for _, client in ipairs(vim.lsp.get_clients({ name = 'midfill' })) do
    client.settings = vim.tbl_deep_extend('force', client.settings, { midfill = settings })
    client:notify('workspace/didChangeConfiguration', { settings = client.settings })
  end
end

return M
