--- Ghost text wherever midfill is attached, `:Midfill` and `:MidfillWhy`. What is written is made by the server alone.

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

for name, link in pairs({
  MidfillBusy = 'Visual',
  MidfillRemoved = 'DiffDelete',
  MidfillAdded = 'DiffAdd',
  MidfillHint = 'Comment',
}) do
  vim.api.nvim_set_hl(0, name, { link = link, default = true })
end

vim.api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'TextChangedP' }, {
  group = group,
  callback = function(args)
    if package.loaded['midfill.edits'] then
      require('midfill.edits').on_change(args.buf)
    end
  end,
})

vim.api.nvim_create_user_command('Midfill', function(command)
  require('midfill.command').run(command)
end, {
  nargs = '+',
  range = true,
  complete = function(lead, line)
    return line:match('Midfill%s+%S*$') and require('midfill.command').complete(lead) or {}
  end,
  desc = 'Edit or fill a selection with midfill: edit, fill, accept, retry, discard, why',
})

vim.api.nvim_create_user_command('MidfillWhy', function()
  require('midfill').why()
end, { desc = 'Why midfill shows what it shows, or nothing' })
