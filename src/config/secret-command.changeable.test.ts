import { chmod, symlink } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { project } from './project.fixture.ts'
import { runSecretCommand } from './secret-command.ts'

const env = { PATH: process.env.PATH }
const script = '#!/bin/sh\necho s3cret\n'

/** What a command in this folder gives, or why it is not run. */
const outcomeIn = (folder: string) => async (line: string) => {
  const outcome = await runSecretCommand({ line, folder }, env)
  return 'fault' in outcome ? outcome.fault : outcome.text
}

test('B6: a helper that others can change is not run: the program, its folder, its script, or what a link leads to', async () => {
  const { folder, at } = await project({ get: script, 'bin/get': script, 'other/get': script, 'plain.sh': script })
  const outcome = outcomeIn(folder)
  for (const path of ['get', 'bin/get', 'other/get', 'plain.sh']) await chmod(at(path), 0o755)
  await symlink(at('other/get'), at('link'))
  for (const line of ['./get', 'bin/get', './link', 'sh plain.sh', `sh ${at('plain.sh')}`]) {
    expect([line, await outcome(line)]).toEqual([line, 's3cret'])
  }
  await chmod(at('get'), 0o757)
  await chmod(at('bin'), 0o777)
  await chmod(at('other/get'), 0o777)
  await chmod(at('plain.sh'), 0o646)
  for (const [line, named] of [
    ['./get', at('get')],
    ['bin/get', at('bin')],
    ['./link', at('other/get')],
    ['sh plain.sh', at('plain.sh')],
  ] as const) {
    expect(await outcome(line)).toContain(`other users can change ${named} (mode `)
  }
})

test('B6: a helper in a sticky folder, such as /tmp, is run', async () => {
  const { folder, at } = await project({ 'shared/get': script })
  await chmod(at('shared/get'), 0o700)
  await chmod(at('shared'), 0o1777)
  expect(await outcomeIn(folder)('shared/get')).toBe('s3cret')
})

test('B6: a program that is found by PATH is looked at, too', async () => {
  const { folder, at } = await project({ 'bin/get-secret': script })
  await chmod(at('bin/get-secret'), 0o777)
  const outcome = await runSecretCommand({ line: 'get-secret', folder }, { PATH: `${at('bin')}:${env.PATH}` })
  expect(outcome).toEqual({ fault: expect.stringContaining('bin/get-secret (mode 777)') })
})
