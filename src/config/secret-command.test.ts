import { chmod, readFile } from 'node:fs/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { until } from '../../tests/fixtures/until.ts'
import { brief, project } from './project.fixture.ts'
import { runSecretCommand, wordsOf } from './secret-command.ts'

const here = (line: string) => ({ line, folder: import.meta.dirname })
const path = { PATH: process.env.PATH }

test('B6: a command is its words: quotation marks keep them together, and nothing is for a shell to read', async () => {
  expect(wordsOf(` get  "a b" 'c "d"' e"f g"h "" `)).toEqual(['get', 'a b', 'c "d"', 'ef gh', ''])
  expect(wordsOf('get "a')).toBeUndefined()
  expect(wordsOf('')).toEqual([])
  expect(await runSecretCommand(here(`printf %s '$HOME;' "\`id\`" && x`), path)).toEqual({ text: '$HOME;`id`&&x' })
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[^\s"']+$/), { minLength: 1 }), (words) => {
      expect(wordsOf(words.join('  '))).toEqual(words)
    }),
  )
})

test('B6: the error of a command that fails, prints nothing or too much, or takes too long contains none of its output', async () => {
  const fault = async (line: string, withinMs?: number) => {
    const outcome = await runSecretCommand(here(line), path, withinMs)
    return 'fault' in outcome ? outcome.fault : `text: ${outcome.text}`
  }
  expect(await fault('sh -c "echo hidden; echo hidden >&2; exit 3"')).toMatch(/^the command sh failed \(exit code 3\)/)
  expect(await fault('no-such-program')).toBe('the command no-such-program cannot be run (ENOENT)')
  expect(await fault('true')).toBe('the command true printed nothing')
  expect(await fault('head -c 70000 /dev/zero')).toMatch(/more than 64 KiB/)
  expect(await fault('get "x')).toMatch(/unclosed quotation mark/)
  // One that leaves a child behind which holds on to its output is ended with it.
  expect(await fault('sh -c "echo hidden; sleep 60 & sleep 60"', 200)).toMatch(/^the command sh .* within 0\.2 s/)
})

test('B6: a value of the configuration may come from a command, which is run once for each load', async () => {
  const folder = await project({
    'toolway.yaml': `
mcpServers:
  a: { url: "https://x", auth: { type: bearer, token: "\${exec:./secret 'for a'}" } }
  b: { url: "https://y", headers: { X-Key: "key \${exec:./secret 'for a'}" } }
  off: { url: "https://z", disabled: true, headers: { X-Key: "\${exec:./secret never}" } }
`,
    secret: '#!/bin/sh\necho "$1" >> ran\necho "s3cret-$1" | tr " " -\n',
  })
  await chmod(folder.at('secret'), 0o700)
  const { config, secrets } = await folder.load({ env: path })
  expect(config.mcpServers).toMatchObject({
    a: { auth: { token: 's3cret-for-a' } },
    b: { headers: { 'X-Key': 'key s3cret-for-a' } },
  })
  expect(secrets).toEqual(['s3cret-for-a'])
  expect(await readFile(folder.at('ran'), 'utf8')).toBe('for a\n')
  await folder.load({ env: path })
  await until(async () => (await readFile(folder.at('ran'), 'utf8')) === 'for a\nfor a\n', { what: 'the second run' })
})

test('B6: a command that fails is a problem of its field; in files that were found automatically, none runs', async () => {
  const own = await project({
    'toolway.yaml': 'mcpServers: { a: { url: "https://x", headers: { K: "${exec:false}" } } }',
  })
  expect(brief(await own.problems({ env: path }))).toEqual([
    expect.stringMatching(/mcpServers\.a\.headers\.K: the command false failed \(exit code 1\)/),
  ])
  const found = await project({
    '.mcp.json': '{ "mcpServers": { "a": { "url": "https://x", "headers": { "K": "${exec:touch ran}" } } } }',
  })
  expect(brief(await found.problems({ env: path })).join()).toContain('this file was found automatically')
  await expect(readFile(found.at('ran'))).rejects.toThrow('ENOENT')
})
