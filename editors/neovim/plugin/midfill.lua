--- Ghost text wherever midfill is attached, and `:MidfillWhy`. Completions are made by the server alone.

if vim.g.loaded_midfill then
  return
end
vim.g.loaded_midfill = true

--- Neovim links the group of ghost text to `NonText`, which can hardly be read in many colour schemes.
local function set_highlight()
  if vim.api.nvim_get_hl(0, { name = 'ComplHint' }).link == 'NonText' then
    vim.api.nvim_set_hl(0, 'ComplHint', { link = 'Comment' })
  end
end

local group = vim.api.nvim_create_augroup('midfill', {})

-- Neovim 0.11 has no ghost text; there midfill answers `textDocument/completion`.
if vim.lsp.inline_completion then
  set_highlight()
  vim.api.nvim_create_autocmd('ColorScheme', { group = group, callback = set_highlight })
  vim.api.nvim_create_autocmd('LspAttach', {
    group = group,
    callback = function(args)
      local client = vim.lsp.get_client_by_id(args.data.client_id)
      if client and client.name == 'midfill' then
        vim.lsp.inline_completion.enable(true, { bufnr = args.buf })
      end
    end,
  })
end

vim.api.nvim_create_user_command('MidfillWhy', function()
  require('midfill').why()
end, { desc = 'Why midfill shows what it shows, or nothing' })
