import { spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { readPage } from '../src/telemetry/metrics/exposition.fixture.ts'
import { metricsOf } from '../src/telemetry/metrics/metrics.fixture.ts'
import { tell } from '../src/telemetry/metrics/observed.fixture.ts'
import { temporaryFolder } from './fixtures/folders.ts'

const at = (path: string) => new URL(`../deploy/${path}`, import.meta.url)
const text = (path: string) => readFile(at(path), 'utf8')

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string }[]
}

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly description: string }
}

const dashboard = async () => JSON.parse(await text('grafana/toolway.json')) as { panels: Panel[]; templating: unknown }
const rules = async () =>
  parse(await text('prometheus/alerts.yml')).groups.flatMap((group: { rules: Rule[] }) => group.rules) as Rule[]

/** Every name on a page on which everything has happened, with the labels that its series have. */
function known(): ReadonlyMap<string, ReadonlySet<string>> {
  using metrics = metricsOf()
  for (const cache of ['hit', 'miss', 'joined'] as const) tell(metrics.observer, { trail: { cache, steps: [] } })
  tell(metrics.observer, { outcome: { kind: 'tool_error' } }, { outcome: { kind: 'denied', code: 'RATE_LIMITED' } })
  tell(metrics.observer, { call: { entry: { ...nativeEntry } } }, { trail: { findings: ['hidden'], steps: [] } })
  const names = new Map<string, Set<string>>()
  for (const { samples } of readPage(metrics.text()).values()) {
    for (const { name, labels } of samples) names.set(name, new Set([...(names.get(name) ?? []), ...labels.keys()]))
  }
  return names
}

const nativeEntry = {
  kind: 'tool',
  server: 'native',
  name: 'hash',
  definition: {},
  traits: { readOnly: true, idempotent: true, timeoutMs: 1000 },
  run: () => Promise.reject(new Error('never')),
} as const

/** Prometheus adds these itself. */
const added = ['instance', 'job']

/** What is wrong with a query: names that are not on our page, labels that none of its names has, braces left open. */
function problems(expr: string, names: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const used = expr.match(/\btoolway_[a-z0-9_]+/g) ?? []
  const labels = new Set([...added, ...used.flatMap((name) => [...(names.get(name) ?? [])])])
  const matched = [...expr.matchAll(/\{([^}]*)\}/g)].flatMap(([, inside = '']) =>
    [...inside.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
  )
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, inside = '']) => inside.split(/,\s*/))
  const depth = [...expr].reduce((sum, c) => sum + ('([{'.includes(c) ? 1 : ')]}'.includes(c) ? -1 : 0), 0)
  return [
    ...used.filter((name) => !names.has(name)),
    ...[...matched, ...grouped].filter((label) => !labels.has(label)).map((label) => `${label} in ${expr}`),
    ...(depth === 0 ? [] : [`unbalanced: ${expr}`]),
  ]
}

test('F15: the dashboard asks for nothing that is not on our page, and for nearly all that is', async () => {
  const names = known()
  const expressions = (await dashboard()).panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
  expect(expressions.length).toBeGreaterThan(30)
  expect(expressions.flatMap((expr) => problems(expr, names))).toEqual([])
  const shown = expressions.join('\n')
  const families = new Set([...names.keys()].map((name) => name.replace(/_(bucket|sum|count)$/, '')))
  expect([...families].filter((name) => !shown.includes(name))).toEqual(['toolway_metrics_unread_total'])
})

test('F15: the dashboard can be imported: ids are unique and no panel lies on another', async () => {
  const { panels } = await dashboard()
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  const taken = new Map<string, string>()
  for (const { title, gridPos } of panels) {
    expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect(taken.get(`${x},${y}`), title).toBeUndefined()
        taken.set(`${x},${y}`, title)
      }
    }
  }
})

test('F15: alerts ask for what is on our page, and say what has happened and what to do', async () => {
  const names = known()
  const all = await rules()
  expect(all.length).toBeGreaterThan(8)
  for (const { alert, expr, labels, annotations } of all) {
    expect(problems(expr, names), alert).toEqual([])
    expect(['info', 'warning', 'critical'], alert).toContain(labels.severity)
    expect(annotations.summary, alert).not.toBe('')
    expect(annotations.description, alert).toMatch(/\.$/)
    const told = [...JSON.stringify(annotations).matchAll(/\$labels\.([a-z]+)/g)].map(([, label = '']) => label)
    const there = new Set([
      ...added,
      ...(expr.match(/toolway_[a-z_]+/g) ?? []).flatMap((name) => [...(names.get(name) ?? [])]),
    ])
    expect(
      told.filter((label) => !there.has(label)),
      alert,
    ).toEqual([])
  }
})

test('F15: the example scrapes with a credential and takes the alerts in', async () => {
  const config = parse(await text('prometheus/prometheus.yml'))
  expect(config.rule_files).toEqual(['alerts.yml'])
  expect(config.scrape_configs).toMatchObject([
    { job_name: 'toolway', metrics_path: '/metrics', authorization: { type: 'Bearer' } },
  ])
})

test('F15: docs/metrics.md names every metric with its labels, and no other', async () => {
  const page = await readFile(new URL('../docs/metrics.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| `(toolway_\w+)` \| (.*?) \|/gm)].map(([, name, labels = '']) => [
    ...[name, [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label).sort()],
  ])
  const families = new Map<string, string[]>()
  for (const [name, labels] of known()) {
    families.set(name.replace(/_(bucket|sum|count)$/, ''), [...labels].filter((label) => label !== 'le').sort())
  }
  expect(rows.toSorted()).toEqual([...families].toSorted())
})

const noPromtool = spawnSync('promtool', ['--version']).error !== undefined

test.skipIf(noPromtool)('F15: promtool takes the alert rules and every query of the dashboard', async () => {
  await using folder = await temporaryFolder()
  const queries = join(folder.path, 'queries.yml')
  const expressions = (await dashboard()).panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
  const recorded = expressions.map((expr, index) => ({
    record: `query_${index}`,
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
  }))
  await writeFile(queries, stringify({ groups: [{ name: 'dashboard', rules: recorded }] }))
  for (const file of [fileURLToPath(at('prometheus/alerts.yml')), queries]) {
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', file])
    expect([status, stderr.toString()], stdout.toString()).toEqual([0, ''])
  }
})
