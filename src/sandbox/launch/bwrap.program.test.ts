import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { missing } from '../../../tests/fixtures/debian.ts'
import { bwrapCommand } from './bwrap.ts'

test.skipIf(missing('bwrap'))('S7: a hidden folder is empty, and cannot be written to', () => {
  const folder = mkdtempSync(join(tmpdir(), 'toolway-hidden-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const hidden = join(folder, 'site-packages')
  mkdirSync(hidden)
  writeFileSync(join(hidden, 'secret.py'), '')
  const [program = '', ...args] = bwrapCommand({
    bwrap: 'bwrap',
    mounts: [{ from: '/', to: '/' }],
    hidden: [hidden],
    filtered: false,
    command: ['/bin/sh', '-c', 'ls "$0"/.. "$0"; touch "$0/new" || echo refused', hidden],
  })
  const { stdout } = spawnSync(program, args, {
    stdio: ['ignore', 'pipe', 'ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
  })
  expect(stdout).toBe(`${hidden}:\n\n${hidden}/..:\nsite-packages\nrefused\n`)
})
