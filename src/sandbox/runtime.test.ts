import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../tests/fixtures/folders.ts'
import { likelyLanguages } from './runtime.ts'

test('S7: Python is offered only if bwrap exists, without starting anything', async () => {
  await using folder = await temporaryFolder()
  expect(likelyLanguages(['javascript', 'python'], folder.path)).toEqual(['javascript'])
  await writeFile(join(folder.path, 'bwrap'), '')
  expect(likelyLanguages(['javascript', 'python'], `:/nowhere:${folder.path}`)).toEqual(['javascript', 'python'])
})
