--- Completions as the server has answered them, and how one of them, or a part of it, gets into the buffer.
--- Knows texts, ranges, the cursor and what the server counts; not how ghost text is drawn.

local M = {}

M.METHOD = 'textDocument/inlineCompletion'

---@class midfill.Place
---@field row integer 0-based
---@field col integer bytes before the cursor
---@field line string

---@class midfill.Answer
---@field client vim.lsp.Client
---@field place midfill.Place for which it was made
---@field items lsp.InlineCompletionItem[]

---@class midfill.Fit Where an item belongs now: bytes of the cursor's line.
---@field place midfill.Place
---@field start integer
---@field stop integer behind what it replaces
---@field present string the part of its text that stands there already, before the cursor
---@field rest string what is left of its text

---@return midfill.Place
function M.here()
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  return { row = row - 1, col = col, line = vim.api.nvim_get_current_line() }
end

--- Whether text is being inserted at this place of this buffer.
---@param buffer integer
---@param place midfill.Place
function M.is_here(buffer, place)
  return vim.api.nvim_get_mode().mode:match('^[iR]') ~= nil
    and vim.api.nvim_get_current_buf() == buffer
    and vim.deep_equal(place, M.here())
end

--- Take over what the server says.
---@param client vim.lsp.Client
---@param place midfill.Place
---@param result? lsp.InlineCompletionList|lsp.InlineCompletionItem[]
---@return midfill.Answer
function M.answer(client, place, result)
  local items = result and (result.items or result) or {}
  for _, item in ipairs(items) do
    -- Lines of a buffer end without a carriage return whatever 'fileformat' is; it would be put into them.
    item.insertText = item.insertText:gsub('\r\n?', '\n')
  end
  return { client = client, place = place, items = items }
end

--- How an item fits the cursor's line as it is now. nil if more has happened than that a part of it was typed.
---@param answer midfill.Answer
---@param item lsp.InlineCompletionItem
---@return midfill.Fit?
function M.fit(answer, item)
  local now, was = M.here(), answer.place
  local typed = now.line:sub(was.col + 1, now.col)
  if now.row ~= was.row or now.line ~= was.line:sub(1, was.col) .. typed .. was.line:sub(was.col + 1) then
    return nil
  end
  local function byte(position)
    return vim.str_byteindex(was.line, answer.client.offset_encoding, position.character, false)
  end
  local start, text = byte(item.range.start), item.insertText
  local present = now.line:sub(start + 1, now.col)
  if not vim.startswith(text, present) then
    if typed ~= '' then
      return nil
    end
    present = '' -- The item rewrites the blanks before the cursor.
  end
  local stop = byte(item.range['end']) + #typed
  return { place = now, start = start, stop = stop, present = present, rest = text:sub(#present + 1) }
end

--- Put an item, or the part of it that `take` returns, into the buffer. What has been typed of it since stays; after
--- any other change nothing happens: the next answer is on its way.
---@param answer midfill.Answer
---@param item lsp.InlineCompletionItem
---@param take fun(rest: string): string
function M.insert(answer, item, take)
  local fit = M.fit(answer, item)
  if not fit then
    return
  end
  local part = fit.present .. take(fit.rest)
  local whole = part == item.insertText
  local lines = vim.split(part, '\n')
  vim.cmd('let &g:undolevels = &g:undolevels') -- `u` takes back the completion and not what was typed before it.
  -- A part leaves alone what stands behind the cursor: the rest, offered next, replaces it.
  local row, stop = fit.place.row, whole and fit.stop or fit.place.col
  vim.api.nvim_buf_set_text(0, row, fit.start, row, stop, lines)
  local col = #lines == 1 and fit.start + #part or #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row + #lines, col })
  if whole then
    answer.client:exec_cmd(item.command)
  else
    local length = vim.str_utfindex(part, 'utf-16')
    answer.client:notify('textDocument/didPartiallyAcceptCompletion', { item = item, acceptedLength = length })
  end
end

--- Tell the server, which counts, that an item can be seen.
---@param answer midfill.Answer
---@param item? lsp.InlineCompletionItem
function M.shown(answer, item)
  if item then
    answer.client:notify('textDocument/didShowCompletion', { item = item })
  end
end

return M
