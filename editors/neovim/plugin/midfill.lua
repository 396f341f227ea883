--- Ghost text and the state wherever midfill is attached, and `:Midfill`. What is written is made by the server alone.

if vim.g.loaded_midfill then
  return
end
vim.g.loaded_midfill = true

local group = vim.api.nvim_create_augroup('midfill', {})

--- Neovim has no group of this name, or links it to `NonText`, which can hardly be read in many colour schemes.
local function set_highlight()
  local hint = vim.api.nvim_get_hl(0, { name = 'ComplHint' })
  if vim.tbl_isempty(hint) or hint.link == 'NonText' then
    vim.api.nvim_set_hl(0, 'ComplHint', { link = 'Comment' })
  end
end

set_highlight()
vim.api.nvim_create_autocmd('ColorScheme', { group = group, callback = set_highlight })

for name, link in pairs({
  ComplHintMore = 'MoreMsg',
  MidfillBusy = 'Visual',
  MidfillRemoved = 'DiffDelete',
  MidfillAdded = 'DiffAdd',
  MidfillHint = 'Comment',
}) do
  vim.api.nvim_set_hl(0, name, { link = link, default = true })
end

---@param event string
---@param act fun(client: vim.lsp.Client, buffer: integer)
local function on(event, act)
  vim.api.nvim_create_autocmd(event, {
    group = group,
    callback = function(args)
      local client = args.data and vim.lsp.get_client_by_id(args.data.client_id) or require('midfill.server').of(args.buf)
      if client and client.name == 'midfill' then
        act(client, args.buf)
      end
    end,
  })
end

on('LspAttach', function(client, buffer)
  require('midfill.ghost').attach(client, buffer)
  require('midfill.status').refresh(client, buffer)
end)
on('LspDetach', function(_, buffer)
  require('midfill.ghost').detach(buffer)
end)
on('BufEnter', function(client, buffer)
  require('midfill.status').refresh(client, buffer)
end)

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
  nargs = '*',
  range = true,
  complete = function(lead, line)
    return require('midfill.command').complete(lead, line)
  end,
  desc = 'midfill: edit or fill a selection, say why, switch off and on, ...',
})
