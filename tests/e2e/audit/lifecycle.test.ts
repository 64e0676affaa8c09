import { writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { expect, test } from 'vitest'
import type { AfterRecord } from '../../../src/audit/record.ts'
import { toolway as command } from '../../../src/cli/kit.fixture.ts'
import { startCommand } from '../../fixtures/command.ts'
import { temporaryFolder } from '../../fixtures/folders.ts'
import { rawSession } from '../../fixtures/raw-http.ts'
import { stdioServers } from '../../fixtures/servers.ts'
import { type LocalToolway, startToolway } from '../../fixtures/toolway.ts'
import { auditRecords, begunIn, endedIn } from './records.ts'

const principal = `os:${userInfo().username}`

const commandOf = (toolway: LocalToolway) => (words: readonly string[]) =>
  command([...words, '--config', toolway.configFile], { cwd: toolway.folder, env: process.env })

test('F11: a gateway records its start, applied reloads, a refused reload and its stop, each once and in this order', async () => {
  await using folder = await temporaryFolder()
  {
    await using toolway = await startToolway({ limits: { concurrency: 7 } }, { folder })
    await toolway.rewrite({ limits: { concurrency: 8 } })
    expect(await toolway.gateway.reload()).toMatchObject({ successes: 1, last_error: null })
    await toolway.rewrite({ limits: { concurrency: 7 } })
    expect(await toolway.gateway.reload()).toMatchObject({ successes: 2, last_error: null })
    await writeFile(toolway.configFile, '{ "limits": { "concurrency": "password-hunter2-many" } }')
    expect((await toolway.gateway.reload()).last_error).not.toBeNull()
  }
  const ended = auditRecords(folder.path).filter((record): record is AfterRecord => record.phase === 'after')
  expect(ended.map(({ operation, decision }) => `${operation} ${decision}`)).toEqual([
    'gateway_start ALLOW',
    'reload ALLOW',
    'reload ALLOW',
    'reload ERROR',
    'gateway_stop ALLOW',
  ])
  for (const record of ended) expect(record).toMatchObject({ principal, agent: '(none)' })
  expect(ended[3]).toMatchObject({ reason: 'configuration_invalid', is_error: true })
  const given = begunIn(folder.path).map((record) => record.arguments as { configuration?: string })
  expect(given).toHaveLength(5)
  expect(given[1]).toMatchObject({ sections: ['limits'] })
  const [started, applied, restored, refused, stopped] = given.map(({ configuration }) => configuration)
  expect(started).toMatch(/^[0-9a-f]{64}$/)
  expect(applied).not.toBe(started)
  expect(refused).toBeUndefined()
  // Equal configurations have equal hashes, and the refused one never was in force.
  expect([restored, stopped]).toEqual([started, started])
})

test('F11: a process that gets SIGTERM records that before it ends', async () => {
  await using folder = await temporaryFolder()
  await using toolway = await startCommand({}, { folder })
  expect(await toolway.stop('SIGTERM')).toMatchObject({ code: 0 })
  const ended = auditRecords(folder.path).filter((record) => record.phase === 'after')
  expect(ended.map(({ operation }) => operation)).toEqual(['gateway_start', 'gateway_stop'])
})

test('F11: keys made and revoked by command while a gateway runs are recorded once each, and never with the key', async () => {
  await using folder = await temporaryFolder()
  {
    await using toolway = await startToolway({ agents: { writer: {} } }, { folder })
    const run = commandOf(toolway)
    const made = await run(['keys', 'create', 'bot', '--agent', 'writer'])
    expect(made.code).toBe(0)
    expect((await run(['keys', 'revoke', 'bot'])).code).toBe(0)
    expect(JSON.stringify(auditRecords(folder.path))).not.toContain(made.stdout.trim().slice('twk_bot_'.length))
    expect((await run(['audit', 'verify'])).code).toBe(0)
  }
  expect(endedIn(folder.path)).toMatchObject([
    { operation: 'create_key', decision: 'ALLOW', principal, write: true, is_error: false },
    { operation: 'revoke_key', decision: 'ALLOW', principal, write: true, is_error: false },
  ])
  const given = begunIn(folder.path).filter(({ operation }) => operation.endsWith('_key'))
  expect(given.map((record) => record.arguments)).toMatchObject([{ id: 'bot', agents: ['writer'] }, { id: 'bot' }])
})

test('F11: pins approved by command are recorded once, with what was approved', async () => {
  await using folder = await temporaryFolder()
  {
    await using toolway = await startToolway(
      { mcpServers: { probe: stdioServers.probe() }, policy: { pins: 'quarantine' } },
      { folder },
    )
    const session = await rawSession(toolway)
    await session.answer('tools/list')
    const run = commandOf(toolway)
    await expect.poll(async () => (await run(['pins', 'list'])).stdout).toContain('probe.echo')
    expect((await run(['pins', 'approve', 'probe.echo'])).code).toBe(0)
    // A name that does not exist changes nothing.
    expect((await run(['pins', 'approve', 'probe.nothing'])).code).not.toBe(0)
  }
  expect(endedIn(folder.path).filter(({ operation }) => operation === 'approve_pins')).toMatchObject([
    { decision: 'ALLOW', principal, write: true, is_error: false },
  ])
  const given = begunIn(folder.path).filter(({ operation }) => operation === 'approve_pins')
  expect(given.map((record) => record.arguments)).toMatchObject([{ label: 'probe.echo' }])
})
