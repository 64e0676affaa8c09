import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../tests/fixtures/runs.ts'
import * as clients from './import/client-files.fixture.ts'
import { namesIn, validNames, withPlainNames } from './import/server-identity.ts'
import { translate } from './import/translate.ts'
import { interpolate } from './interpolate.ts'
import { parseDocument } from './parse/document.ts'
import { validate } from './validate.ts'

const samples: Record<string, string> = {
  'a.yaml': await readFile(new URL('../../toolway.example.yaml', import.meta.url), 'utf8'),
  'a.json':
    '{"mcpServers": {"a": {"type": "http", "url": "http://x", "headers": {"A": "b"}, "enabled": true}}, "agents": {"b": {"allow": {"servers": ["*"]}}}}',
  'a.toml':
    '[[mcp_client.servers]]\nname = "a"\ncommand = "x"\nargs = ["$A"]\n[tool_forwarding.rate_limit]\n"a::b" = 5\n[tool_forwarding.cache]\nttl_seconds = 5\n',
  'b.yaml':
    'mcp_endpoints:\n  - { name: a, endpoint: "http://x", auth_token: "${T}", read_only: true, enabled: false }\n',
}

Object.assign(samples, {
  '.claude.json': clients.claudeCode,
  '.cursor/mcp.json': clients.cursor,
  '.vscode/mcp.json': clients.vscode,
  '.codex/config.toml': clients.codex,
  'opencode.json': clients.opencode,
  '.gemini/settings.json': clients.gemini,
  'zed/settings.json': clients.zed,
  'cline_mcp_settings.json': clients.cline,
})

/** One stretch of a sample replaced by something else. */
const damaged = fc
  .constantFrom(...Object.entries(samples))
  .chain(([path, text]) =>
    fc
      .tuple(
        fc.nat(text.length),
        fc.nat(12),
        fc.oneof(
          fc.string({ maxLength: 5 }),
          fc.constantFrom('null', '[', '{', '"', "'", '&a', '*a', '0', '${', '\t', '\n'),
        ),
      )
      .map(([from, length, inserted]) => ({ path, text: text.slice(0, from) + inserted + text.slice(from + length) })),
  )

test('any file loads or has problems with positions; no other error is thrown', async () => {
  await fc.assert(
    fc.asyncProperty(damaged, async (file) => {
      const { tree, problems } = await parseDocument(file)
      const translation = translate(tree, '')
      const filled = interpolate(
        withPlainNames(translation.tree, validNames(namesIn(translation.tree)), translation),
        {},
      )
      const outcome = validate(filled.tree)
      const all = [
        ...problems,
        ...translation.problems,
        ...filled.problems,
        ...('problems' in outcome ? outcome.problems : []),
      ]
      expect('config' in outcome || all.length > 0).toBe(true)
      for (const { line, column, message } of all) {
        expect(line).toBeGreaterThanOrEqual(1)
        expect(line).toBeLessThanOrEqual(file.text.split('\n').length)
        expect(column).toBeGreaterThanOrEqual(1)
        expect(message).not.toMatch(/undefined|\[object|Invalid input/)
      }
    }),
    runs(40, 10_000),
  )
})
