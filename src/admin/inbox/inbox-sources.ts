import { createHash } from 'node:crypto'
import { statfs } from 'node:fs/promises'
import { availableParallelism, loadavg } from 'node:os'
import { awaitsReview, type PinState } from '../../catalog/pins/pin-state.ts'
import type { Pins } from '../../catalog/pins/pins.ts'
import { findingText } from '../../catalog/scan/finding.ts'
import { isFlag } from '../../catalog/scan/scan.ts'
import { isUnhealthy } from '../../core/source-status.ts'
import { dayMs } from '../../lib/duration.ts'
import type { SharedApprovals } from '../../runtime/approvals.ts'
import type { Generation } from '../../runtime/generation.ts'
import type { ProcessState } from '../../runtime/process-state.ts'
import type { ReloadHistory } from '../../runtime/reload.ts'
import { readKeyFile, type StoredKey } from '../../stores/key-file.ts'
import type { InboxAction } from '../contract.ts'
import type { InboxEntry, InboxSource } from './inbox.ts'

export interface InboxContext extends Pick<ProcessState, 'audit' | 'clock' | 'rejections' | 'storeReadings'> {
  current(): Generation
  readonly history: ReloadHistory
  readonly sharedApprovals: Pick<SharedApprovals, 'list' | 'onChange'>
  /** The free space of the disk with a folder. By default, what the operating system reports. */
  freeBytes?(path: string): Promise<number>
  /** Whether this machine has more to do than it can. By default, what the operating system and the event loop report. */
  isBusy?(): boolean
}

/** The sources that every gateway has. Further ones are added with `Inbox.add`, such as the audit log's verification. */
export const inboxSources = (context: InboxContext): readonly InboxSource[] => [
  approvalSource(context),
  definitionSource(context),
  serverSource(context),
  { items: () => auditItems(context) },
  { items: () => rejectionItems(context) },
  reloadSource(context),
  { items: () => keyItems(context) },
  { items: () => storeItems(context) },
  diskSource(context),
]

const itemPage = (name: string, item: string) => `/${name}/${encodeURIComponent(item)}`

const turnOff = (server: string): InboxAction => ({
  name: 'Turn the server off',
  path: `servers/${encodeURIComponent(server)}/disable`,
  danger: true,
  confirm: `All tools of ${server} disappear, and calls to them are refused, until you turn it on again or Toolway restarts.`,
})

/**
 * Calls that wait for a person, in all workers and replicas. The arguments are left out, because items are also posted to
 * the webhook; the page and `toolway approvals` show them.
 */
const approvalSource = ({ sharedApprovals, current }: InboxContext): InboxSource => ({
  items: () =>
    sharedApprovals.list().map(({ id, agent, principal, server, tool, rule, askedAt, until }) => {
      const path = `approvals/${encodeURIComponent(id)}`
      return {
        id: approvalItemId(id),
        kind: 'approval',
        severity: 'warning',
        title: `${agent} wants to call ${server}.${current().redactor.text(tool)}`,
        detail: `Caller ${principal}, rule ${rule}.`,
        since: askedAt,
        until,
        revision: '',
        link: '/approvals',
        actions: [
          { name: 'Allow once', path, body: { decision: 'once' } },
          { name: 'Allow for this session', path, body: { decision: 'session' } },
          { name: 'Deny', path, body: { decision: 'deny' }, danger: true },
        ],
      }
    }),
  onChange: (listener) => sharedApprovals.onChange(listener),
})

export const approvalItemId = (approval: string): string => `approval:${approval}`

/** Max findings that an item quotes. The definition's page shows all of them. */
const maxQuotedFindings = 3

/** Definitions that are new, changed or flagged, until an operator decides about them. */
function definitionSource({ current, history }: InboxContext): InboxSource {
  let from: Pins | undefined
  let items: readonly { readonly item: InboxEntry; readonly server: string }[] | undefined
  return {
    items() {
      const { pins } = current()
      if (pins !== from || !items) {
        items = pins
          .list()
          .filter(awaitsReview)
          .map((state) => ({ item: definitionItem(state, pins), server: state.server }))
      }
      from = pins
      // A server that is turned off or no longer configured offers nothing, so its definitions need no decision now.
      const isOn = (name: string) => current().servers.get(name)?.server.control.paused === false
      return items.flatMap(({ item, server }) => (isOn(server) ? [item] : []))
    },
    onChange(listener) {
      const changed = () => {
        items = undefined
        listener()
      }
      let watched = current().pins
      let watching = watched.onReview(changed)
      // A reload that changes `policy.pins` replaces the pins.
      const reloads = history.onAttempt(() => {
        if (current().pins === watched) return
        watching[Symbol.dispose]()
        watched = current().pins
        watching = watched.onReview(changed)
        changed()
      })
      return {
        [Symbol.dispose]() {
          watching[Symbol.dispose]()
          reloads[Symbol.dispose]()
        },
      }
    },
  }
}

function definitionItem({ state, ...pin }: PinState, pins: Pick<Pins, 'findingsOf'>): InboxEntry {
  const { label, server, hash, quarantined, changed, flags, seenAt } = pin
  const findings = flags.length === 0 ? [] : pins.findingsOf(label).filter(isFlag).slice(0, maxQuotedFindings)
  const excerpts = findings.map(findingText)
  const found = flags.length === 0 ? '' : `The scanner found: ${excerpts.join('; ') || flags.join(', ')}. `
  const what = changed.length > 0 ? `Changed: ${changed.join(', ')}. ` : ''
  const effect = quarantined ? 'No agent can see or use it.' : 'Agents can use it.'
  const path = `pins/${encodeURIComponent(label)}`
  return {
    id: `definition:${label}`,
    kind: 'definition',
    severity: flags.length > 0 ? 'critical' : 'warning',
    title: state === 'changed' ? `The definition of ${label} changed` : `${label} is ${state}`,
    detail: `${what}${found}${effect}`,
    since: seenAt,
    revision: `${hash} ${quarantined} ${flags.join()}`,
    link: itemPage('pins', label),
    actions: [{ name: quarantined ? 'Keep blocked' : 'Block', path: `${path}/block`, body: { hash } }, turnOff(server)],
  }
}

/** So many servers with the same problem are one item. */
const minTogether = 3
/** What servers seem to do wrong if they get no CPU time. */
const slowness = /\bwithin [\d.]+ m?s\b|to a health check|^Circuit breaker/
/** For how long a busy machine counts as the cause: servers need time to recover. */
const overloadMs = 60_000

function loadReading(): () => boolean {
  let before = performance.eventLoopUtilization()
  return () => {
    const { utilization } = performance.eventLoopUtilization(before)
    before = performance.eventLoopUtilization()
    return utilization > 0.9 || (loadavg()[0] as number) > 2 * availableParallelism()
  }
}

/** Servers that do not work. Those with one cause are one item: to restart each of them would not help. */
function serverSource({ current, clock, isBusy = loadReading() }: InboxContext): InboxSource {
  let overloadedUntil = Number.NEGATIVE_INFINITY
  const causeOf = ({ id, kind, detail }: InboxEntry): string => {
    if (kind !== 'server') return id
    if (clock.monotonic() < overloadedUntil && slowness.test(detail)) return 'overload'
    return detail.replaceAll(serverOfItem(id), '').replace(/\d+/g, '')
  }
  return {
    items() {
      if (isBusy()) overloadedUntil = clock.monotonic() + overloadMs
      const groups = Map.groupBy(serverItems(current()), causeOf)
      return [...groups].flatMap(([cause, items]) => (items.length < minTogether ? items : [commonItem(cause, items)]))
    },
  }
}

const serverId = (name: string): string => `server:${name}`
const serverOfItem = (id: string): string => id.slice(serverId('').length)

function commonItem(cause: string, items: readonly InboxEntry[]): InboxEntry {
  const isOverload = cause === 'overload'
  const what = isOverload ? 'do not answer in time, because this machine is overloaded' : 'have the same problem'
  const detail = isOverload ? 'Stop other programs, or turn servers off.' : items[0]?.detail
  return {
    id: `servers:${createHash('sha256').update(cause).digest('hex').slice(0, 16)}`,
    ...{ kind: 'server', severity: 'warning', link: '/servers', actions: [] },
    title: `${items.length} servers ${what}`,
    detail: `${detail} Servers: ${items.map(({ id }) => serverOfItem(id)).join(', ')}.`,
    since: Math.min(...items.map(({ since = 0 }) => since)),
    // Show a dismissed item again when twice as many servers have the problem.
    revision: String(Math.floor(Math.log2(items.length))),
  }
}

function serverItems({ catalog }: Pick<Generation, 'catalog'>): InboxEntry[] {
  return catalog.summaries().flatMap(({ name, status }): InboxEntry[] => {
    const { health, since, breaker, transport, lastError } = status
    if (!isUnhealthy(health) && breaker !== 'open') return []
    // The item must not change every second.
    const reason = status.reason.replace(/ Next attempt in \d+ s\./, '')
    const item = { id: serverId(name), since, link: itemPage('servers', name), revision: `${health} ${breaker}` }
    const path = `servers/${encodeURIComponent(name)}`
    if (health === 'needs-auth') {
      const actions = [{ name: 'Sign in', path: `${path}/sign-in` }]
      return [
        { ...item, kind: 'sign-in', severity: 'warning', title: `${name} needs a sign-in`, detail: reason, actions },
      ]
    }
    const title = `${name} ${health === 'degraded' ? 'is degraded' : 'is not working'}`
    const effect = breaker === 'open' ? ' Calls fail immediately while its circuit breaker is open.' : ''
    const detail = `${reason || (lastError ?? '')}${effect}`.trim()
    const actions = transport === 'in-process' ? [] : [{ name: 'Restart', path: `${path}/restart` }, turnOff(name)]
    const severity = health === 'degraded' ? 'info' : 'warning'
    return [{ ...item, kind: 'server', severity, title, detail, actions }]
  })
}

function auditItems({ audit }: InboxContext): InboxEntry[] {
  const { recording, error = '', changedBeforeStart } = audit.status()
  const item = { kind: 'audit', severity: 'critical', link: '/audit' } as const
  const items: InboxEntry[] = []
  if (!recording)
    items.push({
      ...item,
      id: 'audit:outage',
      title: 'Audit records cannot be written',
      detail: `${error}. Calls that change something are refused until the log can be written again. Toolway keeps trying.`,
      revision: error,
    })
  if (changedBeforeStart > 0)
    items.push({
      ...item,
      id: 'audit:changed',
      title: 'The audit log was modified while Toolway was not running',
      detail: `Problems found at the start: ${changedBeforeStart}.`,
      revision: String(changedBeforeStart),
      actions: [{ name: 'Verify', path: 'audit/chain/verify' }],
    })
  return items
}

/** At this count per hour, the item becomes a warning: this may be an attack. */
const manyRejected = 10

const causes: Readonly<Record<string, string>> = {
  AUTH_REQUIRED: 'with a missing or wrong token',
  origin: 'from a web page of another origin',
  host: 'for another host name',
  RATE_LIMITED: 'after too many wrong tokens',
  INVALID_AGENT_ID: 'for an agent that the credential may not act as',
  DENIED_BY_POLICY: 'without the required rights',
}

const rejectionItems = ({ rejections }: InboxContext): InboxEntry[] =>
  rejections.recent().map(({ cause, count, example, addresses, lastAt }) => {
    const from = addresses.map(([address, times]) => `${address} (${times})`).join(', ')
    return {
      id: `rejected:${cause}`,
      kind: 'rejected',
      severity: count >= manyRejected ? 'warning' : 'info',
      title: `${count} ${count === 1 ? 'request' : 'requests'} refused in the last hour: ${causes[cause] ?? cause}`,
      detail: `From ${from}.${example === undefined ? '' : ` Last: ${example}.`}`,
      since: lastAt,
      // Show a dismissed item again when there are ten times as many requests, or from other addresses.
      revision: `${Math.floor(Math.log10(count))} ${addresses
        .map(([address]) => address)
        .sort()
        .join()}`,
      link: '/audit?decision=DENY',
    }
  })

function reloadSource({ history }: InboxContext): InboxSource {
  return {
    items() {
      const [last] = history.attempts
      if (!last || last.ok) return []
      return [
        {
          id: 'reload',
          kind: 'reload',
          severity: 'warning',
          title: 'The configuration could not be reloaded',
          detail: `${problemIn(last.error ?? '')} The previous configuration is still active.`,
          since: last.at,
          revision: last.error ?? '',
          link: '/config',
          actions: [{ name: 'Reload', path: 'config/reload' }],
        },
      ]
    },
    onChange: (listener) => history.onAttempt(listener),
  }
}

/** The first problem in the error of a reload, without the line of the file, which may contain a secret. */
function problemIn(error: string): string {
  const [first = '', second, ...more] = error.split('\n').filter((line) => !/^(?:\s|\d+ \|)/.test(line))
  if (second === undefined) return first
  const problem = `${first} ${second.replace(/\.$/, '')}`
  const isQuestion = problem.endsWith('?')
  if (more.length === 0) return isQuestion ? problem : `${problem}.`
  return `${problem}${isQuestion ? ' And' : ', and'} ${more.length} more.`
}

/** How long before its end a key is reported, and how long after it. */
const expiresWithinMs = 7 * dayMs
const expiredWithinMs = 30 * dayMs

/** Keys that expire soon or have expired, and a key file that cannot be used. */
function keyItems({ current, clock }: InboxContext): InboxEntry[] {
  const item = { kind: 'key', link: '/keys' } as const
  let keys: readonly StoredKey[]
  try {
    keys = readKeyFile(current().loaded.config.stores.path)
  } catch (error) {
    const { message } = error as Error
    const title = 'The key file is rejected'
    return [{ ...item, id: 'key-file', severity: 'critical', title, detail: message, revision: message }]
  }
  const now = clock.now()
  return keys.flatMap(({ id, expires }): InboxEntry[] => {
    const end = expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires)
    if (end > now + expiresWithinMs || end < now - expiredWithinMs) return []
    const over = end <= now
    return [
      {
        ...item,
        id: `key:${id}`,
        severity: over ? 'warning' : 'info',
        title: over ? `The key ${id} has expired` : `The key ${id} expires soon`,
        detail: `${over ? 'Expired' : 'Expires'} at ${new Date(end).toISOString()}. Rotate it, or revoke it.`,
        since: over ? end : end - expiresWithinMs,
        revision: String(over),
        actions: [revoke(id)],
      },
    ]
  })
}

const revoke = (key: string): InboxAction => ({
  name: 'Revoke',
  path: `keys/${encodeURIComponent(key)}/revoke`,
  danger: true,
  confirm: `Requests with the key ${key} are refused from now on. This cannot be undone.`,
})

const storeNames: Readonly<Record<string, string>> = {
  redis: 'Redis',
  postgres: 'PostgreSQL',
  workers: 'The primary process',
}

const storeItems = ({ storeReadings }: InboxContext): InboxEntry[] =>
  storeReadings().flatMap(({ name, up, problem }) => {
    if (up) return []
    if (name === 'history') return [historyItem(problem)]
    const effect =
      name === 'postgres'
        ? 'Audit records stay in the local log until it is back.'
        : 'This process uses its own limits, cache and sessions until it is back.'
    const title = `${storeNames[name] ?? name} cannot be reached`
    const lastError = problem === undefined ? '' : ` Last error: ${problem}`
    const detail = `${effect} Toolway reconnects automatically.${lastError}`
    const facts = { id: `store:${name}`, title, detail, revision: 'down', link: '/config' }
    return [{ ...facts, kind: 'store', severity: 'critical' }]
  })

const historyLoss = 'Charts, statistics, calls and sign-ins will be lost when this process stops'

const historyItem = (problem = 'unknown'): InboxEntry => ({
  ...{ id: 'store:history', kind: 'store', severity: 'warning', title: 'The history cannot be stored' },
  detail: `${historyLoss}: ${problem}. Check \`stores.path\` and its disk.`,
  ...{ revision: problem, link: '/config' },
})

/** Below this, audit records and other state may soon not fit. */
const minFreeBytes = 256 * 1_048_576
const diskLookMs = 30_000

const freeDiskBytes = (path: string) => statfs(path).then(({ bavail, bsize }) => bavail * bsize)

/** The free space of the state folder and of the audit log's folder, read in the background. */
function diskSource({ current, clock, freeBytes = freeDiskBytes }: InboxContext): InboxSource {
  let lookedAt = Number.NEGATIVE_INFINITY
  let free: { readonly path: string; readonly bytes: number }[] = []

  const look = async () => {
    const { stores, audit } = current().loaded.config
    const paths = [...new Set([stores.path, audit.path])]
    const bytesIn = (path: string) => freeBytes(path).catch(() => Number.POSITIVE_INFINITY)
    free = await Promise.all(paths.map(async (path) => ({ path, bytes: await bytesIn(path) })))
  }

  return {
    items() {
      if (clock.monotonic() - lookedAt >= diskLookMs) {
        lookedAt = clock.monotonic()
        void look()
      }
      const full = free.filter(({ bytes }) => bytes < minFreeBytes)
      return full.map(({ path, bytes }) => ({
        id: `disk:${path}`,
        kind: 'store',
        severity: 'critical',
        title: 'The disk is almost full',
        detail: `${path} has ${Math.floor(bytes / 1_048_576)} MiB left. Calls that change something are refused when audit records do not fit.`,
        revision: 'full',
        link: '/config',
      }))
    },
  }
}
