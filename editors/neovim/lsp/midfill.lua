--- How Neovim starts midfill: `vim.lsp.enable('midfill')`. Change it with `vim.lsp.config('midfill', {...})`.

---@type vim.lsp.Config
return {
  cmd = { 'midfill', 'lsp' },
  filetypes = { 'python', 'javascript', 'javascriptreact', 'typescript', 'typescriptreact' },
  root_markers = { '.git' },
  settings = {
    midfill = {
      -- Neovim waits 200 ms after a keystroke before it asks for ghost text; the server need not wait again.
      debounceMs = vim.lsp.inline_completion and 0 or nil,
    },
  },
  on_init = function(client)
    require('midfill').on_init(client)
  end,
  handlers = {
    ['midfill/status'] = function(_, status)
      require('midfill').on_status(status)
    end,
    ['midfill/editDraft'] = function(_, draft)
      require('midfill.edits').on_draft(draft)
    end,
    ['window/showMessage'] = function(_, message)
      require('midfill').on_message(message)
    end,
  },
}
