import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { runServe } from '../../fixtures/command.ts'
import { writeConfig } from '../../fixtures/config-file.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { commandLine, descriptors } from '../../fixtures/processes.ts'
import { serverProgram, toolwayMain } from '../../fixtures/programs.ts'
import { rawRequest } from '../../fixtures/raw-http.ts'
import { until } from '../../fixtures/until.ts'

test('B10: a worker answers a request on a connection that it is handed while it begins to listen', async () => {
  await using folder = await temporaryFolder()
  const held = join(folder.path, 'held')
  const preload = pathToFileURL(serverProgram('held-start')).href
  const env = { ...process.env, NODE_OPTIONS: `--import=${preload}`, HELD_START: held }
  const configFile = await writeConfig(folder.path, {}, '')
  await using toolway = await runServe({ cwd: folder.path, env, configFile, words: ['--workers', '2'] })
  const [victim = 0] = toolway.children().filter((pid) => commandLine(pid).includes(`${toolwayMain} serve`))

  writeFileSync(held, '')
  process.kill(victim, 'SIGKILL')
  await until(() => readFileSync(held, 'utf8') !== '', { what: 'its successor to begin to listen' })
  const idle = descriptors(toolway.pid).sockets
  const answers: string[] = []
  // New connections go to the workers in turn, so one of two goes to the successor.
  for (let sent = 0; sent < 2; sent++) {
    void rawRequest(toolway.url, { method: 'GET', path: '/livez' }).then(
      ({ status }) => answers.push(`HTTP ${status}`),
      ({ message }: Error) => answers.push(message),
    )
  }
  await until(() => answers.length === 1 && descriptors(toolway.pid).sockets === idle + 1, {
    what: 'one response, and one connection that the successor has not accepted',
  })
  rmSync(held)
  await until(() => answers.length === 2, { what: 'the response of the successor', withinMs: 20_000 })
  expect(answers).toEqual(['HTTP 200', 'HTTP 200'])
}, 90_000)
