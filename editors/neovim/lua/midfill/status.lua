--- What the server says of itself, kept for status lines. Knows the states by name; not how they come about.

local M = {}

---@class midfill.Status
---@field state string
---@field detail? string
---@field hint? string
---@field model? string
---@field progress? {percent?: integer}

---@type table<string, string>
local WORDS = {
  stopped = 'resting',
  errored = 'error',
  failed = 'error',
}

---@type table<string, string>
local SENTENCES = {
  starting = 'starting',
  loading = 'loading the model',
  ready = 'ready',
  busy = 'completing',
  stopped = 'the engine has ended and starts when it is needed',
  off = 'off',
  warning = 'the last request failed',
  errored = 'completion is not possible',
  failed = 'the server has ended by itself',
}

---@param status midfill.Status
local function share(status)
  local percent = status.state == 'loading' and status.progress and status.progress.percent
  return percent and (' %d%%'):format(percent) or ''
end

---@param status? midfill.Status nil: there is no server any more
function M.take(status)
  local before = vim.g.midfill_status
  vim.g.midfill_status = status
  vim.api.nvim_exec_autocmds('User', { pattern = 'MidfillStatus', modeline = false })
  vim.cmd.redrawstatus()
  -- Who waits for the model with a finger off the keys need not press another one.
  if status and status.state == 'ready' and before and (before.state == 'loading' or before.state == 'starting') then
    require('midfill.ghost').again(vim.api.nvim_get_current_buf())
  end
end

--- Ask how things are in a buffer: what is off in one file may be on in another.
---@param client vim.lsp.Client
---@param buffer integer
function M.refresh(client, buffer)
  local params = { textDocument = vim.lsp.util.make_text_document_params(buffer) }
  client:request('midfill/status', params, function(_, status)
    if status and vim.api.nvim_get_current_buf() == buffer then
      M.take(status)
    end
  end, buffer)
end

--- A server has ended.
---@param code integer
---@param signal integer
function M.ended(code, signal)
  local well = code == 0 and (signal == 0 or signal == 15)
  M.take(not well and { state = 'failed', hint = ':Midfill restart' } or nil)
end

--- In one word or two: "loading 40%", "ready", "busy", "off", "warning", "error" ...
---@param status midfill.Status
function M.word(status)
  return (WORDS[status.state] or status.state) .. share(status)
end

---@param status midfill.Status
function M.sentence(status)
  local sentence = (SENTENCES[status.state] or status.state) .. share(status)
  if status.detail and status.detail ~= '' then
    sentence = sentence .. ': ' .. status.detail
  end
  if status.hint and status.hint ~= '' then
    sentence = sentence .. '; ' .. status.hint
  end
  return sentence .. (status.model and status.model ~= '' and (' (model %s)'):format(status.model) or '')
end

return M
