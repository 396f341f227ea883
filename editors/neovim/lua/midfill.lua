--- What Neovim's own inline completion leaves to be done: accepting a part, accepting while typing, asking explicitly.
--- Knows texts, ranges and the cursor; what to complete and with what is the server's business.

local M = {}

local METHOD = 'textDocument/inlineCompletion'
local INVOKED = 1

---@class midfill.Place
---@field row integer 0-based
---@field col integer bytes before the cursor
---@field line string

---@class midfill.Answer: midfill.Place
---@field encoding string
---@field items lsp.InlineCompletionItem[]

---@type table<integer, midfill.Answer> The last answer in each buffer, with the place that it was made for.
local answers = {}

local invoke_next = false

---@return midfill.Place
local function here()
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  return { row = row - 1, col = col, line = vim.api.nvim_get_current_line() }
end

--- Called with every new client. An answer goes on to Neovim only if the cursor is where it was when Neovim asked:
--- Neovim itself would show it, also after Insert mode has ended.
---@param client vim.lsp.Client
function M.on_init(client)
  local request = client.request
  client.request = function(self, method, params, handler, bufnr)
    if method ~= METHOD or not handler then
      return request(self, method, params, handler, bufnr)
    end
    if invoke_next then
      invoke_next = false
      params.context.triggerKind = INVOKED
    end
    local buffer, place = vim.api.nvim_get_current_buf(), here()
    return request(self, method, params, function(err, result, ctx)
      local insert = vim.api.nvim_get_mode().mode:match('^[iR]')
      if not insert or vim.api.nvim_get_current_buf() ~= buffer or not vim.deep_equal(place, here()) then
        return
      end
      local items = result and (result.items or result) or {}
      for _, item in ipairs(items) do
        -- Lines of a buffer end without a carriage return whatever 'fileformat' is; Neovim would put it into them.
        item.insertText = item.insertText:gsub('\r\n?', '\n')
      end
      answers[buffer] = vim.tbl_extend('error', place, { encoding = self.offset_encoding, items = items })
      handler(err, result, ctx)
    end, bufnr)
  end
end

---@param answer midfill.Answer
---@param text string
---@return integer?, integer? # the bytes of the answer's line that the item replaces; nil if there is no such item
local function span(answer, text)
  for _, item in ipairs(answer.items) do
    if item.insertText == text then
      local function byte(position)
        return vim.str_byteindex(answer.line, answer.encoding, position.character, false)
      end
      return byte(item.range.start), byte(item.range['end'])
    end
  end
end

--- Put an item, or the part of it that `take` returns, into the buffer. What has been typed of it since stays; after
--- any other change nothing happens: the next answer is on its way.
---@param text string
---@param take fun(rest: string): string
local function insert(text, take)
  local now, answer = here(), answers[vim.api.nvim_get_current_buf()]
  local typed = now.line:sub(answer.col + 1, now.col)
  local start, stop = span(answer, text)
  local only_typed = now.line == answer.line:sub(1, answer.col) .. typed .. answer.line:sub(answer.col + 1)
  if not start or now.row ~= answer.row or not only_typed then
    return
  end
  local present = now.line:sub(start + 1, now.col)
  if not vim.startswith(text, present) then
    if typed ~= '' then
      return
    end
    present = ''
  end
  local part = present .. take(text:sub(#present + 1))
  -- A part leaves alone what stands behind the cursor: the rest, offered next, replaces it.
  local last = part == text and stop + #typed or now.col
  local lines = vim.split(part, '\n')
  vim.cmd('let &g:undolevels = &g:undolevels') -- `u` takes back the completion and not what was typed before it.
  vim.api.nvim_buf_set_text(0, now.row, start, now.row, last, lines)
  local col = #lines == 1 and start + #part or #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { now.row + #lines, col })
end

---@param take fun(rest: string): string
---@return boolean # whether there was ghost text, like `vim.lsp.inline_completion.get()`
local function accept(take)
  return vim.lsp.inline_completion ~= nil
    and vim.lsp.inline_completion.get({
      on_accept = function(item)
        insert(item.insert_text, take)
      end,
    })
end

--- Accept the ghost text.
function M.accept()
  return accept(function(rest)
    return rest
  end)
end

--- Accept the next word of the ghost text.
function M.accept_word()
  return accept(function(rest)
    return rest:match('^%s*[%w_\128-\255]+') or rest:match('^%s*[^%w_%s\128-\255]+') or rest
  end)
end

--- Accept the ghost text up to the end of its next line.
function M.accept_line()
  return accept(function(rest)
    return rest:match('^\n*[^\n]+') or rest
  end)
end

--- Ask explicitly: the server takes more time, offers several candidates and holds none back.
function M.ask()
  invoke_next = true
  vim.api.nvim_exec_autocmds('CursorMovedI', { buffer = 0 })
end

--- Keep the server's state for status lines: `vim.g.midfill_status.state` and so on.
---@param status table
function M.on_status(status)
  vim.g.midfill_status = status
  vim.api.nvim_exec_autocmds('User', { pattern = 'MidfillStatus', modeline = false })
  vim.cmd.redrawstatus()
end

--- Say something in one line, whatever its length: a longer message would wait for a key, and all else with it.
---@param message string
---@param level? integer
function M.say(message, level)
  message = ('midfill: ' .. message):gsub('%s*\n%s*', ' ')
  local more = '… (:Midfill why)'
  if vim.fn.strdisplaywidth(message) > vim.v.echospace then
    local room = vim.v.echospace - vim.fn.strdisplaywidth(more)
    while vim.fn.strdisplaywidth(message) > room do
      message = vim.fn.strcharpart(message, 0, vim.fn.strcharlen(message) - 1)
    end
    message = message .. more
  end
  vim.notify(message, level or vim.log.levels.INFO)
end

--- What the server has to say (`window/showMessage`).
---@param message {type: integer, message: string}
function M.on_message(message)
  local levels = { vim.log.levels.ERROR, vim.log.levels.WARN }
  M.say(message.message:gsub('^midfill: ', ''), levels[message.type])
end

--- Say in one sentence what became of the last request in this buffer.
function M.why()
  local client = vim.lsp.get_clients({ name = 'midfill', bufnr = 0 })[1]
  if not client then
    M.say('not attached to this buffer (see :checkhealth vim.lsp)', vim.log.levels.WARN)
    return
  end
  local params = { textDocument = vim.lsp.util.make_text_document_params() }
  client:request('midfill/why', params, function(err, result)
    vim.notify('midfill: ' .. (err and err.message or result.sentence))
  end)
end

return M
