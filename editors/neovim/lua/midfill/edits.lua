--- Inline edits: ask for one, see it come below the selection, then accept, retry or discard it.
--- The buffer stays as it is until the edit is accepted, which is one undo step. What to write is the server's business.

local M = {}

local HINT = ':Midfill accept | retry | discard'
local CHANGED = 'the text has changed since: select it and ask again'
local INSTEAD = 'fill the selection instead'

local say = require('midfill.say').warning
local namespace = vim.api.nvim_create_namespace('midfill.edits')

---@class midfill.Edit
---@field buffer integer
---@field client vim.lsp.Client
---@field instruction? string nil: the selection is filled
---@field range lsp.Range
---@field seed integer
---@field token integer
---@field request? integer while the server is at work
---@field selection? integer the extmark of the selection
---@field preview? integer the extmark below which the preview stands
---@field edit? lsp.WorkspaceEdit what there is to accept
---@field tick? integer the state of the buffer that it fits

---@type midfill.Edit? There is one at a time.
local current
local count = 0

--- Tell whoever wants to know, by the autocommand `User MidfillEdit`.
---@param state "asking"|"draft"|"proposed"|"ended"
local function tell(state)
  vim.api.nvim_exec_autocmds('User', { pattern = 'MidfillEdit', modeline = false, data = { state = state } })
end

---@param buffer integer
---@param row integer
local function line_at(buffer, row)
  return vim.api.nvim_buf_get_lines(buffer, row, row + 1, false)[1] or ''
end

--- Mark the selection, as it is in the buffer now.
---@param session midfill.Edit
---@param range lsp.Range
---@param group string
local function mark(session, range, group)
  local function place(position)
    local text = line_at(session.buffer, position.line)
    return position.line, vim.str_byteindex(text, session.client.offset_encoding, position.character, false)
  end
  local row, col = place(range.start)
  local end_row, end_col = place(range['end'])
  if end_row > row and end_col == 0 then -- Whole lines: the last of them is the one above.
    end_row = end_row - 1
    end_col = #line_at(session.buffer, end_row)
  end
  session.selection = vim.api.nvim_buf_set_extmark(session.buffer, namespace, row, col, {
    id = session.selection,
    end_row = end_row,
    end_col = end_col,
    hl_group = group,
  })
  session.preview = vim.api.nvim_buf_set_extmark(session.buffer, namespace, end_row, 0, { id = session.preview })
end

--- Show below the selection what would take its place.
---@param session midfill.Edit
---@param text string
---@param hint? string
local function show(session, text, hint)
  local row = vim.api.nvim_buf_get_extmark_by_id(session.buffer, namespace, session.preview, {})[1]
  if not row then
    return
  end
  local tab = (' '):rep(vim.bo[session.buffer].tabstop)
  local lines = vim.tbl_map(function(line)
    return { { line == '' and ' ' or line:gsub('\t', tab), 'MidfillAdded' } }
  end, text == '' and {} or vim.split(text:gsub('\r\n?', '\n'):gsub('\n$', ''), '\n'))
  if hint then
    table.insert(lines, { { hint, 'MidfillHint' } })
  end
  vim.api.nvim_buf_set_extmark(session.buffer, namespace, row, 0, { id = session.preview, virt_lines = lines })
end

--- Forget what has been asked for or proposed. The text stays as it is.
---@return boolean # whether there was anything
function M.discard()
  local session = current
  if not session then
    return false
  end
  current = nil
  if session.request then
    session.client:cancel_request(session.request)
  end
  if vim.api.nvim_buf_is_valid(session.buffer) then
    vim.api.nvim_buf_clear_namespace(session.buffer, namespace, 0, -1)
  end
  tell('ended')
  return true
end

---@param session midfill.Edit
---@param answer table
local function answered(session, answer)
  if answer.edit and vim.lsp.util.buf_versions[session.buffer] == answer.version then
    session.edit, session.range = answer.edit, answer.range
    session.tick = vim.api.nvim_buf_get_changedtick(session.buffer)
    mark(session, answer.range, 'MidfillRemoved')
    show(session, answer.text, HINT)
    tell('proposed')
    return
  end
  M.discard()
  if not answer.offer then
    say(answer.edit and CHANGED or answer.message)
    return
  end
  vim.ui.select({ INSTEAD, 'leave it' }, { prompt = 'midfill: ' .. answer.message }, function(chosen)
    if chosen == INSTEAD then
      M.start(session.buffer, session.range, nil)
    end
  end)
end

--- Ask for an edit of a range of a buffer or, without an instruction, for a fill.
---@param buffer integer
---@param range lsp.Range an empty one stands for its line
---@param instruction? string
---@param seed? integer
function M.start(buffer, range, instruction, seed)
  M.discard()
  local client = require('midfill.server').wanted(buffer)
  if not client then
    return
  end
  count = count + 1
  local session =
    { buffer = buffer, client = client, instruction = instruction, range = range, seed = seed or 0, token = count }
  current = session
  mark(session, range, 'MidfillBusy')
  local _, request = client:request(instruction and 'midfill/edit' or 'midfill/fill', {
    textDocument = vim.lsp.util.make_text_document_params(buffer),
    range = range,
    instruction = instruction,
    seed = session.seed,
    draftToken = session.token,
  }, function(err, answer)
    session.request = nil
    if current ~= session then
      return
    end
    if err then
      M.discard()
      say(err.message)
    else
      answered(session, answer)
    end
  end, buffer)
  session.request = request
  tell('asking')
end

--- The selection as it would be after a denoising step.
---@param draft {token: integer, text: string}
function M.on_draft(draft)
  if current and current.token == draft.token and not current.edit then
    show(current, draft.text)
    tell('draft')
  end
end

--- Something in a buffer has changed: what fitted it does not fit any more.
---@param buffer integer
function M.on_change(buffer)
  if current and current.edit and current.buffer == buffer and vim.b[buffer].changedtick ~= current.tick then
    M.discard()
    say(CHANGED)
  end
end

--- Put what is proposed into the buffer.
---@return boolean # whether there was anything
function M.accept()
  local session = current
  if not (session and session.edit) then
    return false
  end
  M.on_change(session.buffer)
  if current ~= session then
    return false
  end
  M.discard()
  vim.lsp.util.apply_workspace_edit(session.edit, session.client.offset_encoding)
  return true
end

--- Ask again for what has been proposed, or is being asked for, with other chances.
---@return boolean # whether there was anything
function M.retry()
  local session = current
  if not session then
    return false
  end
  local row, col, details =
    unpack(vim.api.nvim_buf_get_extmark_by_id(session.buffer, namespace, session.selection, { details = true }))
  local function position(line, byte)
    local text = line_at(session.buffer, line)
    return { line = line, character = vim.str_utfindex(text, session.client.offset_encoding, byte, false) }
  end
  local range = { start = position(row, col), ['end'] = position(details.end_row, details.end_col) }
  M.start(session.buffer, range, session.instruction, session.seed + 1)
  return true
end

--- The range of a user command: the visual selection to the character, whole lines, or the cursor's line.
---@param command {range: integer, line1: integer, line2: integer}
---@return lsp.Range
function M.range_of(command)
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  if command.range == 0 then
    return { start = { line = row, character = 0 }, ['end'] = { line = row, character = 0 } }
  end
  local from, to = vim.api.nvim_buf_get_mark(0, '<'), vim.api.nvim_buf_get_mark(0, '>')
  local selected = command.range == 2 and from[1] == command.line1 and to[1] == command.line2
  if not selected or vim.fn.visualmode() ~= 'v' then
    return {
      start = { line = command.line1 - 1, character = 0 },
      ['end'] = { line = command.line2, character = 0 },
    }
  end
  local client = require('midfill.server').of()
  local encoding = client and client.offset_encoding or 'utf-16'
  local function position(at, behind)
    local text = line_at(0, at[1] - 1)
    local byte = math.min(at[2], #text)
    if behind and byte < #text and vim.o.selection ~= 'exclusive' then
      byte = byte + 1 + vim.str_utf_end(text, byte + 1)
    end
    return { line = at[1] - 1, character = vim.str_utfindex(text, encoding, byte, false) }
  end
  return { start = position(from, false), ['end'] = position(to, true) }
end

return M
