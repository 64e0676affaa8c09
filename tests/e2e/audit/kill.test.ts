import { expect, test } from 'vitest'
import { killWriters } from '../../fixtures/audit-kills.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'

test('F11: after ten kills -9 under load no acknowledged record is missing, the chain verifies, torn ends are cut', async () => {
  await using folder = await temporaryFolder()
  const kills = await killWriters(folder.path, 10)
  expect(kills).toMatchObject({ lost: [], problems: [], lanes: ['1'], cut: kills.torn })
  expect(kills.acknowledged).toBeGreaterThan(100)
})
