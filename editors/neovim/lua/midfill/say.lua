--- What is said to the user: a line, or a page in a window of its own.

local M = {}

--- Say something in one line, whatever its length: a longer message would wait for a key, and all else with it.
---@param message string
---@param level? integer
function M.line(message, level)
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

---@param message string
function M.warning(message)
  M.line(message, vim.log.levels.WARN)
end

--- Show text in a window below; `q` closes it.
---@param text string
function M.page(text)
  local lines = vim.split(vim.trim(text), '\n')
  vim.cmd('botright ' .. math.min(#lines, math.floor(vim.o.lines / 2)) .. 'new')
  vim.bo.buftype, vim.bo.bufhidden, vim.bo.swapfile = 'nofile', 'wipe', false
  vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
  vim.bo.modifiable = false
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = true, nowait = true })
end

return M
