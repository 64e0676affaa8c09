import { execFile } from 'node:child_process'
import { cp, mkdir, rm, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { type Command, startCommand } from '../tests/fixtures/command.ts'
import { type WrittenConfig, writeConfig } from '../tests/fixtures/config-file.ts'
import { temporaryFolder } from '../tests/fixtures/folders.ts'
import {
  freezeRedis,
  frozenConfig,
  frozenFolder,
  replicaStores,
  signedInServer,
} from '../tests/fixtures/frozen-state.ts'
import { ask, postgresProgram, startPostgres } from '../tests/fixtures/postgres.ts'
import { rawSession } from '../tests/fixtures/raw-http.ts'
import { askRedis, startRedis } from '../tests/fixtures/redis.ts'
import { until } from '../tests/fixtures/until.ts'

/*
 * Writes tests/fixtures/state-0.1.0 with the program of 0.1.0; the README.md there says how to run this. Its argument is
 * a checkout of 0.1.0 with its node_modules.
 */

const [checkout] = process.argv.slice(2)
if (checkout === undefined) throw new Error('usage: node tooling/freeze-state.ts CHECKOUT_OF_0.1.0')
const old = resolve(checkout)
const main = join(old, 'src/cli/main.ts')
const run = promisify(execFile)

const toolway = async (cwd: string, ...words: string[]) =>
  JSON.parse((await run(process.execPath, [main, ...words, '--json', '--config', 'toolway.json'], { cwd })).stdout)

/** A module of 0.1.0. */
// biome-ignore lint/suspicious/noExplicitAny: it has no types here
const load = (path: string): Promise<any> => import(pathToFileURL(join(old, 'src', path)).href)

/** Calls that leave records of every kind: reads, writes, a prompt, a denial and a wrong name. */
async function use({ url, token }: Command, name: string) {
  const session = await rawSession({ url, token })
  const call = async (tool: string, args = {}) =>
    (await session.answer('tools/call', { name: `notes__${tool}`, arguments: args })).result
  await session.ask('tools/list')
  await call('add_note', { text: `${name} note`, password: 'hunter2' })
  const listed = await call('list_notes')
  await call('remove_note', { id: name })
  await call('export_notes')
  await session.ask('tools/call', { name: 'notes__unknown', arguments: {} })
  await session.ask('prompts/get', { name: 'notes__summary', arguments: {} })
  const { id } = (listed?.structuredContent ?? {}) as { id?: string }
  return { session: session.headers['mcp-session-id'] ?? '', listed: id ?? '' }
}

const grant = {
  issuer: 'https://login.example.test',
  resource: signedInServer.url,
  client: { id: 'test-client', secret: 'test-client-secret' },
  accessToken: 'test-access-token',
  refreshToken: 'test-refresh-token',
  scopes: ['tasks'],
  grantedAt: 1_700_000_000_000,
}
const holder = { server: 'tasks', url: signedInServer.url, principal: '' }

async function grantIn(vault: object): Promise<void> {
  const { Grants } = await load('upstream/oauth/grants.ts')
  const grants = new Grants(vault, () => {})
  await grants.demanded(holder, { issuer: grant.issuer, scopes: ['tasks'] })
  await grants.granted(holder, grant)
  await grants.registered('tasks', grant.issuer, grant.client)
}

/** State of one machine: two writers, several segments, pins approved and waiting. */
async function freezeSingle() {
  await using open = new AsyncDisposableStack()
  const folder = open.use(await temporaryFolder())
  const start = async (version: number, more: WrittenConfig = {}) =>
    open.use(await startCommand(frozenConfig(version, {}, more), { folder, main }))
  await writeConfig(folder.path, frozenConfig(1), '')
  const ci = await toolway(folder.path, 'keys', 'create', 'ci', '--agent', '*')
  const ops = await toolway(folder.path, 'keys', 'create', 'ops', '--admin')

  // A segment lasts a quarter of the retention time.
  const first = await start(1, { audit: { retain: '40s' } })
  await use(first, 'first')
  await pause(11_000)
  await use(first, 'second')
  await first.stop()
  // The other one is killed: its log ends without a checkpoint.
  const third = await start(2)
  const fourth = await start(2)
  await use(third, 'third')
  await toolway(folder.path, 'pins', 'approve', 'notes.list_notes')
  await toolway(folder.path, 'pins', 'approve', 'notes.export_notes')
  await use(fourth, 'fourth')
  await toolway(folder.path, 'audit', 'query', '--text', 'note')
  await fourth.stop('SIGKILL')
  await third.stop()
  const state = join(folder.path, 'state')
  const { fileVault } = await load('stores/vault.ts')
  await grantIn(fileVault(state))
  await keep(state, 'single')
  return { token: first.token, keys: { ci: ci.key as string, ops: ops.key as string } }
}

/** State of replicas: one was stopped, the other was killed while it held a session. */
async function freezeReplicas() {
  await using open = new AsyncDisposableStack()
  const redis = open.use(await startRedis())
  const postgres = open.use(await startPostgres())
  const database = await postgres.database()
  const config = frozenConfig(1, replicaStores(redis.url, database), { cache: { enabled: true, ttl: '1h' } })
  const folders = [open.use(await temporaryFolder()), open.use(await temporaryFolder())] as const
  const start = async (folder: (typeof folders)[0]) => open.use(await startCommand(config, { folder, main }))
  const [killed, stopped] = [await start(folders[0]), await start(folders[1])]
  const { session, listed } = await use(killed, 'killed')
  await use(stopped, 'stopped')
  const { connectRedis } = await load('stores/redis/connection.ts')
  const { redisSafe } = await load('stores/redis/vault.ts')
  const { systemClock } = await load('core/clock.ts')
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const connection = open.use(await connectRedis({ url: redis.url, clock: systemClock, log }))
  await until(() => connection.up, { what: 'Redis' })
  const { key } = config.stores as { key: string }
  await grantIn(redisSafe({ redis: connection, key, clock: systemClock, log }).vault)
  await stopped.stop()
  const shipped = async () => {
    const chains = await ask<{ seq: string }>(database, 'SELECT seq FROM toolway.chains')
    return chains.length === 2 && chains.every(({ seq }) => Number(seq) > 12)
  }
  await until(shipped, { what: 'the records in PostgreSQL' })
  await killed.stop('SIGKILL')
  await keep(join(folders[0].path, 'state'), 'replica')
  await writeFile(join(frozenFolder, 'redis.json'), lines(await askRedis(redis, freezeRedis)))
  const words = ['--no-owner', '--no-privileges', '--inserts', database]
  const { stdout } = await run(postgresProgram('pg_dump'), words)
  // Commands for psql are not SQL; comments say nothing that the statements do not.
  const sql = stdout.split('\n').filter((line) => !/^(\\|--( |$))/.test(line))
  await writeFile(join(frozenFolder, 'postgres.sql'), sql.join('\n').replace(/\n{2,}/g, '\n'))
  return { session, cached: listed }
}

/** One element a line. */
const lines = (values: readonly unknown[]) =>
  `[\n${values.map((value) => `  ${JSON.stringify(value)}`).join(',\n')}\n]\n`

/** Not frozen: reserved space, empty folders, and process ids of this machine. */
const left = ['locks', 'reserve', 'processes']

async function keep(state: string, name: string): Promise<void> {
  await cp(state, join(frozenFolder, name), { recursive: true, filter: (path) => !left.includes(basename(path)) })
}

for (const name of ['single', 'replica']) await rm(join(frozenFolder, name), { recursive: true, force: true })
await mkdir(frozenFolder, { recursive: true })
const facts = { ...(await freezeSingle()), ...(await freezeReplicas()) }
await writeFile(join(frozenFolder, 'facts.json'), `${JSON.stringify(facts, undefined, 2)}\n`)
