/**
 * `npm run bench:adversary [-- --rounds 3 --seconds 3 --rate 100 --only NAME --json]`: what one caller who attacks costs
 * another one. A bystander calls a stdio and an HTTP server at a steady rate, in both protocols, in windows without and
 * with each attack of tests/fixtures/attacks.ts. The attacker is a process of its own. Exits with 1 if a call of the
 * bystander fails, or if an attack costs more than a fifth of its calls.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { parseArgs } from 'node:util'
import { keyFor } from '../tests/e2e/admin/people.ts'
import { attack, attacks } from '../tests/fixtures/attacks.ts'
import { startCommand } from '../tests/fixtures/command.ts'
import { startHttpServer } from '../tests/fixtures/http-server.ts'
import { modernRequest } from '../tests/fixtures/raw-callers.ts'
import { messageOf, rawSession, rpc } from '../tests/fixtures/raw-http.ts'
import { stdioServers } from '../tests/fixtures/servers.ts'
import type { Endpoint } from '../tests/fixtures/toolway.ts'
import { median } from './measure/statistics.ts'

/** The part of its calls that an attack may cost a bystander. */
const maxLoss = 0.2

/** Calls of the bystander that may wait for their answers; further ones are not made, and count as lost. */
const maxWaiting = 64

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '3' },
    rate: { type: 'string', default: '100' },
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
    /** For the process of the HTTP server. */
    web: { type: 'boolean', default: false },
    /** For the attacker's process. */
    attack: { type: 'string' },
    url: { type: 'string', default: '' },
    key: { type: 'string', default: '' },
  },
})

interface Window {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly failures: readonly string[]
}

type Send = () => Promise<void>

if (values.web) process.send?.((await startHttpServer()).url)
else if (values.attack === undefined) await compare()
else await attackUntilTold(values.attack, { url: values.url, token: values.key })

async function attackUntilTold(name: string, endpoint: Endpoint): Promise<void> {
  const one = attacks.find((known) => known.name === name)
  if (!one) throw new Error(`Unknown attack: ${name}`)
  const over = new AbortController()
  process.once('message', () => over.abort())
  await attack(one, endpoint, over.signal)
  process.exit()
}

async function compare(): Promise<void> {
  const [rounds, seconds, rate] = [Number(values.rounds), Number(values.seconds), Number(values.rate)]
  const chosen = attacks.filter(({ name }) => values.only === undefined || name.includes(values.only))
  const [attacker, bystander] = [keyFor('attacker', ['default']), keyFor('bystander', ['default'])]
  const web = forkSelf(['--web'])
  using _ = { [Symbol.dispose]: () => void web.kill() }
  const [url] = (await once(web, 'message')) as [string]
  await using gateway = await startCommand({
    mcpServers: { files: stdioServers.everything(), web: { url } },
    auth: { keys: [attacker.configured, bystander.configured] },
  })
  const senders = await sendersOf({ url: gateway.url, token: bystander.key })
  await measure(senders, 1, rate)
  const rows = []
  for (const { name, protocol } of chosen) {
    const [calm, attacked]: [Window[], Window[]] = [[], []]
    for (let round = 0; round < rounds; round++) {
      calm.push(await measure(senders, seconds, rate))
      const child = forkSelf(['--attack', name, '--url', gateway.url, '--key', attacker.key])
      const exit = once(child, 'exit')
      // Leave out the start of the attacker's process.
      await new Promise((resolve) => setTimeout(resolve, 1_000))
      attacked.push(await measure(senders, seconds, rate))
      child.send('stop')
      await exit
    }
    const row = rowOf(name, protocol, calm, attacked)
    rows.push(row)
    if (!values.json) console.log(lineOf(row))
  }
  if (values.json) console.log(JSON.stringify(rows, undefined, 2))
  if (rows.some(({ failures, lost }) => failures.length > 0 || lost > maxLoss)) process.exitCode = 1
}

/** The servers and the attacker are processes of their own, so that they do not keep the bystander from its work. */
function forkSelf(words: readonly string[]) {
  return fork(import.meta.filename, words, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
}

type Row = ReturnType<typeof rowOf>

function rowOf(name: string, protocol: string, calm: readonly Window[], attacked: readonly Window[]) {
  const without = median(calm.map(({ perSecond }) => perSecond))
  const during = median(attacked.map(({ perSecond }) => perSecond))
  const lost = Math.max(0, 1 - during / without)
  const p50Ms = [median(calm.map(({ p50Ms }) => p50Ms)), median(attacked.map(({ p50Ms }) => p50Ms))] as const
  const p99Ms = [median(calm.map(({ p99Ms }) => p99Ms)), median(attacked.map(({ p99Ms }) => p99Ms))] as const
  const failures = [...calm, ...attacked].flatMap((window) => window.failures)
  return { attack: name, protocol, without, during, lost, p50Ms, p99Ms, failures }
}

function lineOf({ attack: name, without, during, lost, p50Ms, p99Ms, failures }: Row): string {
  const times = `p50 ${p50Ms.map((ms) => ms.toFixed(1)).join(' → ')} ms, p99 ${p99Ms.map((ms) => ms.toFixed(0)).join(' → ')} ms`
  const failed = failures.length > 0 ? `, ${failures.length} failed: ${failures[0]}` : ''
  return `${name}: ${without.toFixed(0)} → ${during.toFixed(0)} calls/s (${(lost * 100).toFixed(0)}% lost), ${times}${failed}`
}

/** Calls each server at a steady rate. */
async function measure(senders: readonly Send[], seconds: number, rate: number): Promise<Window> {
  const took: number[] = []
  const failures: string[] = []
  const waiting = new Set<Promise<void>>()
  const begun = performance.now()
  let made = 0
  const begin = (send: Send) => {
    if (waiting.size >= maxWaiting) return
    const start = performance.now()
    const call: Promise<void> = send()
      .then(
        () => void took.push(performance.now() - start),
        (thrown: unknown) => void failures.push(String(thrown)),
      )
      .finally(() => waiting.delete(call))
    waiting.add(call)
  }
  while (performance.now() - begun < seconds * 1000) {
    for (const due = ((performance.now() - begun) / 1000) * rate; made < due; made++) senders.forEach(begin)
    await new Promise((next) => setTimeout(next, 2))
  }
  const elapsed = (performance.now() - begun) / 1000
  const perSecond = took.length / elapsed
  await Promise.all(waiting)
  took.sort((a, b) => a - b)
  const at = (share: number) => took[Math.min(took.length - 1, Math.floor(took.length * share))] ?? Number.NaN
  return { perSecond, p50Ms: at(0.5), p99Ms: at(0.99), failures }
}

/** A call to the stdio server in a session, and one to the HTTP server without. Both reject unless they are answered. */
async function sendersOf(endpoint: Endpoint): Promise<Send[]> {
  const agent = new Agent({ keepAlive: true })
  const { headers } = await rawSession(endpoint)
  let lastId = 0
  const call = (name: string) => ({ name, arguments: { message: 'here' } })
  const ask = (message: { headers: Readonly<Record<string, string>>; body: string }) =>
    new Promise<void>((resolve, reject) => {
      const length = { 'content-length': Buffer.byteLength(message.body) }
      const options = { method: 'POST', headers: { ...message.headers, ...length }, agent }
      const outgoing = request(endpoint.url, options, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part) => (text += part))
        response.on('error', reject).on('end', () => {
          const good = response.statusCode === 200 && JSON.parse(messageOf(text)).result?.isError !== true
          if (good) resolve()
          else reject(new Error(`HTTP ${response.statusCode} ${text.slice(0, 300)}`))
        })
      })
      outgoing.on('error', reject).end(message.body)
    })
  return [
    () => ask({ headers, body: rpc(++lastId, 'tools/call', call('files__echo')) }),
    () => ask(modernRequest(endpoint, ++lastId, 'tools/call', call('web__echo'))),
  ]
}
