--- `:Midfill SUBCOMMAND`: a table from names to functions.

local say = require('midfill.say')
local server = require('midfill.server')

local M = {}

---@class midfill.Subcommand
---@field run fun(rest: string, command: {range: integer, line1: integer, line2: integer})
---@field words? fun(): string[] what may follow

---@param name string
---@param complaint string
local function with_edit(name, complaint)
  return function()
    if not require('midfill.edits')[name]() then
      say.line(complaint)
    end
  end
end

---@return string[]
local function models()
  local program = server.program()
  local ended = program and vim.system(vim.list_extend(program, { 'model', 'list', '--json' }), { text = true }):wait()
  if not ended or ended.code ~= 0 then
    return {}
  end
  return vim.tbl_map(function(model)
    return model.name
  end, vim.json.decode(ended.stdout))
end

---@param name string
local function use_model(name)
  server.set({ model = name })
  say.line(('%s completes in this Neovim (everywhere: midfill model use %s)'):format(name, name))
end

---@type table<string, midfill.Subcommand>
M.subcommands = {
  edit = {
    run = function(instruction, command)
      local edits = require('midfill.edits')
      local buffer, range = vim.api.nvim_get_current_buf(), edits.range_of(command)
      if instruction ~= '' then
        edits.start(buffer, range, instruction)
        return
      end
      vim.ui.input({ prompt = 'midfill: what to change? ' }, function(given)
        if given and given:match('%S') then
          edits.start(buffer, range, given)
        end
      end)
    end,
  },
  fill = {
    run = function(_, command)
      local edits = require('midfill.edits')
      edits.start(vim.api.nvim_get_current_buf(), edits.range_of(command), nil)
    end,
  },
  accept = { run = with_edit('accept', 'there is no edit to accept') },
  retry = { run = with_edit('retry', 'there is no edit to ask for again') },
  discard = { run = with_edit('discard', 'there is no edit to discard') },
  why = {
    words = function()
      return { 'full' }
    end,
    run = function(how)
      server.ask_about_document('midfill/why', function(why)
        if how == 'full' then
          say.page(why.full)
        else
          vim.notify('midfill: ' .. why.sentence)
        end
      end)
    end,
  },
  toggle = {
    words = function()
      return { 'language' }
    end,
    run = function(what)
      local client = server.of()
      local language = what == 'language' and client and client.get_language_id(0, vim.bo.filetype) or nil
      server.execute('midfill.toggle', { language }, function(now)
        say.line(('%s for %s'):format(now.enabled and 'on' or 'off', language or 'all languages'))
        require('midfill.status').refresh(client, vim.api.nvim_get_current_buf())
      end)
    end,
  },
  status = {
    run = function()
      server.ask_about_document('midfill/status', function(status)
        say.line(require('midfill.status').sentence(status))
      end)
    end,
  },
  stats = {
    run = function()
      server.run({ 'stats' }, say.page)
    end,
  },
  restart = {
    run = function()
      server.restart()
    end,
  },
  log = {
    words = function()
      return { 'server' }
    end,
    run = function(which)
      if which == 'server' then
        vim.cmd.tabedit(vim.fn.fnameescape(vim.lsp.log.get_filename()))
        return
      end
      server.run({ 'engine', 'status', '--json' }, function(output)
        vim.cmd.tabedit(vim.fn.fnameescape(vim.json.decode(output).log))
      end)
    end,
  },
  model = {
    words = models,
    run = function(name)
      if name ~= '' then
        use_model(name)
        return
      end
      server.run({ 'model', 'list', '--json' }, function(output)
        vim.ui.select(vim.json.decode(output), {
          prompt = 'midfill: which model?',
          format_item = function(model)
            return ('%s %s: %s'):format(model.used and '*' or ' ', model.name, model.state)
          end,
        }, function(model)
          if model then
            use_model(model.name)
          end
        end)
      end)
    end,
  },
}

---@param command {args: string, range: integer, line1: integer, line2: integer}
function M.run(command)
  local name, rest = command.args:match('^%s*(%S*)%s*(.-)%s*$')
  local subcommand = M.subcommands[name == '' and 'status' or name]
  if not subcommand then
    say.line(('no subcommand %s; there are %s'):format(name, table.concat(M.complete('', 'Midfill '), ', ')))
    return
  end
  subcommand.run(rest, command)
end

---@param lead string
---@param line string the command line up to the cursor
---@return string[]
function M.complete(lead, line)
  local name = line:match('Midfill%s+(%S+)%s+%S*$')
  local words = {}
  if line:match('Midfill%s+%S*$') then
    words = vim.tbl_keys(M.subcommands)
  elseif name and M.subcommands[name] and M.subcommands[name].words then
    words = M.subcommands[name].words()
  end
  words = vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, words)
  table.sort(words)
  return words
end

return M
