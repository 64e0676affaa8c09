import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const manifest = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'))

test('B6: the published package has no script that npm would run, or ask about, where it is installed', () => {
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare', 'preprepare', 'postprepare'])
    expect(manifest.scripts).not.toHaveProperty(name)
})

test('the package says where its source, its page and its issues are', () => {
  const [, owner, name] = /^io\.github\.(\w+)\/(\w+)$/.exec(manifest.mcpName) ?? []
  const page = `https://github.com/${owner}/${name}`
  expect(manifest).toMatchObject({
    repository: { type: 'git', url: `git+${page}.git` },
    homepage: `${page}#readme`,
    bugs: `${page}/issues`,
  })
})
