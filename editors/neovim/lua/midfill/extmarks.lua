--- Ghost text by extmarks, for Neovim 0.11, which has none of its own. See ghost.lua for what a painter is.
--- Every key asks; waiting for the next one is left to the server, which knows how long answers take.

local insertion = require('midfill.insertion')

---@type midfill.Painter
local M = { PAUSE = 0, NAMESPACE = 'midfill.ghost' }

local INVOKED, AUTOMATIC = 1, 2

local namespace = vim.api.nvim_create_namespace(M.NAMESPACE)

---@class midfill.Buffer
---@field client vim.lsp.Client
---@field group integer
---@field answer? midfill.Answer what is shown
---@field number integer of the item that is shown
---@field hint? boolean whether that number is shown too
---@field request? integer
---@field asked? midfill.Place where, while there is no answer

---@type table<integer, midfill.Buffer>
local buffers = {}

---@param buffer integer
local function hide(buffer)
  buffers[buffer].answer = nil
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
end

---@param buffer integer
local function cancel(buffer)
  local state = buffers[buffer]
  if state.request then
    state.client:cancel_request(state.request)
  end
  state.request, state.asked = nil, nil
end

--- Where and how the first line of an item is drawn. What it replaces behind the cursor must not be seen twice: it is
--- left out where it ends the text, as a closing bracket does, and drawn over otherwise.
---@param fit midfill.Fit
---@param first string
---@param more boolean whether lines follow
---@return integer column, "inline"|"overlay" how, string text
local function placed(fit, first, more)
  local col = fit.start + #fit.present
  local covered = fit.place.line:sub(col + 1, fit.stop)
  if not more and col == fit.place.col and vim.endswith(first, covered) then
    return col, 'inline', first:sub(1, #first - #covered)
  end
  local width = vim.fn.strdisplaywidth
  return col, 'overlay', first .. (' '):rep(width(covered) - width(first))
end

--- Draw what is left of the item that is shown, or hide it if it does not fit any more.
---@param buffer integer
local function draw(buffer)
  local state = buffers[buffer]
  local answer = state.answer
  local item = answer and answer.items[state.number]
  local fit = item and insertion.fit(answer, item)
  hide(buffer)
  if not fit or fit.rest == '' then
    return
  end
  state.answer = answer
  local lines = vim.split(fit.rest, '\n')
  local col, how, first = placed(fit, lines[1], #lines > 1)
  local tab = (' '):rep(vim.bo[buffer].tabstop)
  lines[1] = first
  local shown = vim.tbl_map(function(line)
    return { { (line:gsub('\t', tab)), 'ComplHint' } }
  end, lines)
  if state.hint then
    table.insert(shown[#shown], { (' (%d/%d)'):format(state.number, #answer.items), 'ComplHintMore' })
  end
  vim.api.nvim_buf_set_extmark(buffer, namespace, fit.place.row, col, {
    virt_text = shown[1],
    virt_text_pos = how,
    virt_lines = { unpack(shown, 2) },
    hl_mode = 'combine',
  })
end

---@param buffer integer
---@param number integer
---@param hint boolean
local function show(buffer, number, hint)
  local state = buffers[buffer]
  state.number, state.hint = number, hint
  draw(buffer)
  if state.answer then
    insertion.shown(state.answer, state.answer.items[number])
  end
end

---@param buffer integer
---@param kind integer
local function request(buffer, kind)
  local state, place = buffers[buffer], insertion.here()
  if kind == AUTOMATIC and vim.deep_equal(state.asked, place) then
    return
  end
  cancel(buffer)
  state.asked = place
  local id
  _, id = state.client:request(insertion.METHOD, {
    textDocument = vim.lsp.util.make_text_document_params(buffer),
    position = vim.lsp.util.make_position_params(0, state.client.offset_encoding).position,
    context = { triggerKind = kind },
  }, function(err, result)
    if buffers[buffer] ~= state or state.request ~= id then
      return
    end
    state.request, state.asked = nil, nil
    if not err and insertion.is_here(buffer, place) then
      state.answer = insertion.answer(state.client, place, result)
      show(buffer, 1, false)
    end
  end, buffer)
  state.request = id
end

function M.attach(client, buffer)
  M.detach(buffer)
  local group = vim.api.nvim_create_augroup('midfill.ghost.' .. buffer, {})
  buffers[buffer] = { client = client, group = group, number = 1 }
  vim.api.nvim_create_autocmd({ 'InsertEnter', 'CursorMovedI', 'TextChangedP' }, {
    group = group,
    buffer = buffer,
    callback = function()
      draw(buffer)
      request(buffer, AUTOMATIC)
    end,
  })
  vim.api.nvim_create_autocmd('InsertLeave', {
    group = group,
    buffer = buffer,
    callback = function()
      cancel(buffer)
      hide(buffer)
    end,
  })
end

function M.detach(buffer)
  local state = buffers[buffer]
  if not state then
    return
  end
  vim.api.nvim_del_augroup_by_id(state.group)
  if vim.api.nvim_buf_is_valid(buffer) then
    hide(buffer)
  end
  buffers[buffer] = nil
end

function M.accept(take)
  local buffer = vim.api.nvim_get_current_buf()
  local state = buffers[buffer]
  local answer = state and state.answer
  if not answer then
    return false
  end
  -- The text may not be changed while an `<expr>` mapping is evaluated.
  vim.schedule(function()
    if buffers[buffer] == state and state.answer == answer then
      cancel(buffer)
      hide(buffer)
      insertion.insert(answer, answer.items[state.number], take)
    end
  end)
  return true
end

function M.ask()
  local buffer = vim.api.nvim_get_current_buf()
  if buffers[buffer] then
    request(buffer, INVOKED)
  end
end

function M.select(count)
  local buffer = vim.api.nvim_get_current_buf()
  local state = buffers[buffer]
  if state and state.answer then
    show(buffer, (state.number - 1 + count) % #state.answer.items + 1, true)
  end
end

return M
