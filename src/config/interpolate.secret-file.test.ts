import { chmod, symlink, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { brief, project } from './project.fixture.ts'

const config = (reference: string) => `
mcpServers:
  a: { url: "https://x/mcp", headers: { Authorization: "Bearer ${reference}" } }
`

async function withSecret(content: string, mode: number) {
  const place = await project({
    'sub/toolway.yaml': config('${file:secrets/token}'),
    'home/home.yaml': config('${file:~/token}'),
    'sub/secrets/token': content,
    'home/token': content,
  })
  for (const path of [place.at('sub', 'secrets', 'token'), place.at('home', 'token')]) await chmod(path, mode)
  return place
}

test('B6: a secret may come from a file of its own, beside the configuration or at home', async () => {
  const { load, at } = await withSecret('s3cr3t\n', 0o600)
  for (const path of ['sub/toolway.yaml', 'home/home.yaml']) {
    const { config, filesToWatch } = await load({ paths: [path] })
    expect(config.mcpServers.a).toMatchObject({ headers: { Authorization: 'Bearer s3cr3t' } })
    expect(filesToWatch.some((place) => place.endsWith('token'))).toBe(true)
  }
  await symlink(at('home', 'token'), at('home', 'linked'))
  await writeFile(at('home', 'home.yaml'), config('${file:~/linked}'))
  expect((await load({ paths: ['home/home.yaml'] })).config.mcpServers.a).toMatchObject({
    headers: { Authorization: 'Bearer s3cr3t' },
  })
})

test.each([
  ['that others can read', 's3cr3t', 0o640, /is readable by others \(mode 640\); run chmod 600 on it/],
  ['that is empty', '\n', 0o600, /is empty/],
  ['that is far too large', 's'.repeat(70_000), 0o600, /larger than 64 KiB/],
])('B6: a file %s is refused with its place, and without its content', async (_, content, mode, fault) => {
  const { problems } = await withSecret(content, mode)
  const found = await problems({ paths: ['sub/toolway.yaml'] })
  expect(found).toMatchObject([{ key: 'mcpServers.a.headers.Authorization', line: 3 }])
  expect(found[0]?.message).toMatch(fault)
  expect(JSON.stringify(found)).not.toContain('s3cr3t')
})

test('B6: a missing file and a folder are refused', async () => {
  const { problems, at } = await project({ 'toolway.yaml': config('${file:gone}'), 'folder.yaml': config('${file:.}') })
  expect(brief(await problems())[0]).toContain(`the file ${at('gone')} cannot be read: no such file`)
  expect(brief(await problems({ paths: ['folder.yaml'] }))[0]).toContain('is not a regular file')
})

test('B6: what a file holds is never looked at again', async () => {
  const { load } = await withSecret('${HOME}', 0o600)
  expect((await load({ paths: ['sub/toolway.yaml'] })).config.mcpServers.a).toMatchObject({
    headers: { Authorization: 'Bearer ${HOME}' },
  })
})
