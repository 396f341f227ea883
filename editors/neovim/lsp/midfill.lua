--- How Neovim starts midfill: `vim.lsp.enable('midfill')`. Change it with `vim.lsp.config('midfill', {...})`.

---@type vim.lsp.Config
return {
  cmd = { 'midfill', 'lsp' },
  filetypes = { 'python', 'javascript', 'javascriptreact', 'typescript', 'typescriptreact' },
  root_markers = { '.git' },
  settings = {
    -- What Neovim has waited for is not waited for again.
    midfill = { clientDebounceMs = require('midfill.ghost').PAUSE },
  },
  -- Neovim 0.11 does not know that it shows ghost text.
  capabilities = { textDocument = { inlineCompletion = { dynamicRegistration = false } } },
  on_exit = function(code, signal)
    vim.schedule(function()
      require('midfill.status').ended(code, signal)
      require('midfill.server').ended()
    end)
  end,
  handlers = {
    ['midfill/status'] = function(_, status)
      require('midfill.status').take(status)
    end,
    ['midfill/editDraft'] = function(_, draft)
      require('midfill.edits').on_draft(draft)
    end,
    ['window/showMessage'] = function(_, message)
      local levels = { vim.log.levels.ERROR, vim.log.levels.WARN }
      require('midfill.say').line(message.message:gsub('^midfill: ', ''), levels[message.type])
    end,
  },
}
