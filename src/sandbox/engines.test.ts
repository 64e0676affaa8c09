import { copyFileSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../core/clock.ts'
import { bundleChild } from './bundled-child.fixture.ts'
import { openWorkshop } from './executor.fixture.ts'
import { defaultLimits } from './limits.ts'

test('S7: what does not work here is said in the log once, and tried again after a while', async () => {
  using bundle = await bundleChild()
  const folder = mkdtempSync(join(tmpdir(), 'toolway-engines-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'main.mjs')
  let later = 0
  const clock = { ...systemClock, now: () => systemClock.now() + later }
  await using workshop = openWorkshop(
    { minIsolation: 'worker' },
    { child: pathToFileURL(file), tiers: ['worker'], clock },
  )
  expect(await workshop.run('1')).toMatchObject({ status: 'refused' })
  later += defaultLimits.againMs
  expect(await workshop.run('1')).toMatchObject({ status: 'refused' })
  copyFileSync(bundle.url, file)
  expect(await workshop.run('1')).toMatchObject({ status: 'refused' })
  later += defaultLimits.againMs
  expect(await workshop.run('1')).toMatchObject({ status: 'ok', isolation: 'worker' })
  expect(workshop.log.lines).toMatchObject([
    { level: 'warn', message: 'programs for the engine of javascript cannot be run' },
  ])
})
