import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Commands, startCommands } from '../../fixtures/commands/commands.ts'
import { linksOf } from '../docs/anchors.ts'
import { storiesOf } from '../docs/blocks.ts'
import { isTold, tell } from '../docs/story.ts'

const root = fileURLToPath(new URL('../../../examples/', import.meta.url))
const folders = globSync('*/README.md', { cwd: root }).map(dirname).sort()
const readme = (folder: string): string => readFileSync(join(root, folder, 'README.md'), 'utf8')

let commands: Commands
beforeAll(() => {
  commands = startCommands()
})
afterAll(() => commands[Symbol.asyncDispose]())

test('every example is in the index, and its README has at most 40 lines', () => {
  expect(linksOf(readme('.'))).toEqual(expect.arrayContaining(folders))
  expect(folders.filter((folder) => readme(folder).trimEnd().split('\n').length > 40)).toEqual([])
})

/** That of replicas needs Redis and PostgreSQL: replicas.test.ts. */
const told = folders.filter((folder) => folder !== 'replicas')

test.concurrent.each(told)('the example %s does what its README says', async (folder) => {
  const blocks = storiesOf(readme(folder)).flat().filter(isTold)
  expect(blocks).not.toEqual([])
  await tell(blocks, commands, join(root, folder))
})
