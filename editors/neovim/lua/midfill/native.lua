--- Ghost text by Neovim's own `vim.lsp.inline_completion` (0.12), and what that leaves to be done: asking explicitly,
--- and keeping away answers that came too late. See ghost.lua for what a painter is.

local insertion = require('midfill.insertion')

---@type midfill.Painter
local M = { PAUSE = 200, NAMESPACE = 'nvim.lsp.inline_completion' }

local INVOKED = 1

---@type table<integer, midfill.Answer> The last answer in each buffer.
local answers = {}
---@type table<integer, integer> The number of the item that is shown.
local numbers = {}

local ask_next = false

--- An answer goes on to Neovim only if the cursor is where it was when Neovim asked: Neovim itself would show it, also
--- after Insert mode has ended.
---@param client vim.lsp.Client
local function watch(client)
  local request = client.request
  client.request = function(self, method, params, handler, bufnr)
    if method ~= insertion.METHOD or not handler then
      return request(self, method, params, handler, bufnr)
    end
    if ask_next then
      ask_next = false
      params.context.triggerKind = INVOKED
    end
    local buffer, place = vim.api.nvim_get_current_buf(), insertion.here()
    return request(self, method, params, function(err, result, context)
      if not insertion.is_here(buffer, place) then
        return
      end
      local answer = insertion.answer(self, place, result)
      answers[buffer], numbers[buffer] = answer, 1
      insertion.shown(answer, answer.items[1])
      handler(err, result, context)
    end, bufnr)
  end
end

---@type table<integer, true>
local watched = {}

function M.attach(client, buffer)
  if not watched[client.id] then
    watched[client.id] = true
    watch(client)
  end
  vim.lsp.inline_completion.enable(true, { bufnr = buffer })
end

function M.detach(buffer)
  answers[buffer], numbers[buffer] = nil, nil
end

function M.accept(take)
  local answer = answers[vim.api.nvim_get_current_buf()]
  return vim.lsp.inline_completion.get({
    on_accept = function(shown)
      for _, item in ipairs(answer and answer.items or {}) do
        if item.insertText == shown.insert_text then
          insertion.insert(answer, item, take)
          return
        end
      end
    end,
  })
end

function M.ask()
  ask_next = true
  vim.api.nvim_exec_autocmds('CursorMovedI', { buffer = 0 })
end

function M.select(count)
  local buffer = vim.api.nvim_get_current_buf()
  local answer = answers[buffer]
  vim.lsp.inline_completion.select({ count = count })
  if answer then
    numbers[buffer] = (numbers[buffer] - 1 + count) % #answer.items + 1
    insertion.shown(answer, answer.items[numbers[buffer]])
  end
end

return M
