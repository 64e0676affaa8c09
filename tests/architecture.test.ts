import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, test } from 'vitest'

const source = join(import.meta.dirname, '../src')

const features = [
  'upstream',
  'catalog',
  'policy',
  'pipeline',
  'stores',
  'audit',
  'telemetry',
  'tools',
  'serve',
  'chat',
  'sandbox',
]

/**
 * Which folder may import which: cli, index → runtime → features → config types, wire → core, lib. `config types` means
 * type imports only. Features do not import one another: `runtime` hands them functions.
 */
const table: Record<string, readonly string[]> = {
  lib: [],
  core: ['lib'],
  config: ['core', 'lib'],
  clients: ['core', 'lib', 'config'],
  wire: ['core', 'lib'],
  upstream: ['core', 'lib', 'config types', 'wire'],
  catalog: ['core', 'lib', 'config types'],
  policy: ['core', 'lib', 'config types'],
  pipeline: ['core', 'lib', 'config types'],
  stores: ['core', 'lib', 'config types'],
  audit: ['core', 'lib', 'config types'],
  telemetry: ['core', 'lib', 'config types'],
  tools: ['core', 'lib', 'config types'],
  serve: ['core', 'lib', 'config types', 'wire'],
  chat: ['core', 'lib', 'config types'],
  sandbox: ['core', 'lib', 'config types'],
  runtime: ['core', 'lib', 'config', 'clients', 'wire', ...features],
  cli: ['core', 'lib', 'config', 'clients', 'policy', 'stores', 'audit', 'telemetry', 'catalog', 'runtime'],
  'index.ts': ['core', 'config', 'chat', 'serve', 'telemetry', 'tools', 'runtime'],
}

/** A call names its entry, and an entry runs calls: the one circle there is, of types. */
const apart = { from: 'core/entry.ts', to: 'core/call.ts' }

interface Arrow {
  readonly from: string
  readonly to: string
  readonly typesOnly: boolean
}

const isTest = (file: string) => /\.(test|fixture)\.ts$/.test(file)
const files = globSync('**/*.ts', { cwd: source }).filter((file) => !isTest(file))
const room = (file: string) => file.split('/')[0] as string

/** Every import and re-export, type-only or not, lazy ones included. */
function arrows(file: string): Arrow[] {
  const text = readFileSync(join(source, file), 'utf8')
  const statements = text.matchAll(/(?:^|\n)\s*(?:import|export)\s+(type\s+)?([^'"]*?)from\s+'(\.[^']+)'/g)
  const lazy = text.matchAll(/import\(\s*'(\.[^']+)'\s*\)/g)
  const target = (path: string) => normalize(join(dirname(file), path))
  return [
    ...[...statements].map(([, type, names = '', path = '']) => ({
      from: file,
      to: target(path),
      typesOnly: type !== undefined || /^\{\s*(type\s+\w+(\s+as\s+\w+)?\s*,?\s*)+\}\s*$/.test(names.trim()),
    })),
    ...[...lazy].map(([, path = '']) => ({ from: file, to: target(path), typesOnly: false })),
  ]
}

const all = files.flatMap(arrows)

function allowed({ from, to, typesOnly }: Arrow): boolean {
  if (room(from) === room(to)) return true
  const may = table[room(from)] ?? []
  return may.includes(room(to)) || (typesOnly && may.includes(`${room(to)} types`))
}

describe('imports between folders', () => {
  test('every folder is in the table', () => {
    expect(files.map(room).filter((name) => !(name in table))).toEqual([])
  })

  test('imports run one way', () => {
    expect(all.filter((arrow) => !allowed(arrow)).map(({ from, to }) => `${from} -> ${to}`)).toEqual([])
  })

  test('there are no import cycles', () => {
    const next = Map.groupBy(
      all.filter(({ from, to }) => from !== apart.from || to !== apart.to),
      ({ from }) => from,
    )
    const done = new Set<string>()
    const circle = (file: string, way: readonly string[]): readonly string[] | undefined => {
      if (way.includes(file)) return [...way.slice(way.indexOf(file)), file]
      if (done.has(file)) return undefined
      for (const { to } of next.get(file) ?? []) {
        const found = circle(to, [...way, file])
        if (found) return found
      }
      done.add(file)
      return undefined
    }
    for (const file of files) expect(circle(file, []), file).toBeUndefined()
  })

  test('durations are measured by the monotonic clock', () => {
    // Ages of what was stored by an earlier run or is shown with its date, and the way from one clock to the other.
    const byDate = [
      'upstream/listing/server-listing.ts',
      'runtime/admin/figures.ts',
      'runtime/admin/inbox.ts',
      'runtime/admin/policy.ts',
      'serve/admin/credentials.ts',
      'telemetry/history/call-history.ts',
      'telemetry/traces/call-spans.ts',
      'stores/postgres/shipper.ts',
      'cli/commands/approvals.ts',
      'cli/doctor/credentials.ts',
      'cli/doctor/port.ts',
    ]
    const measured = /clock\.now\(\) [-+]|[-+] clock\.now\(\)|(?:began|begun|started|start) = clock\.now\(\)/
    const wrong = files.filter((file) => measured.test(readFileSync(join(source, file), 'utf8')))
    // The dates of a reload and of a breaker's state are called what they are for readers.
    const shown = ['runtime/reload.ts', 'pipeline/breaker.ts']
    expect(wrong.filter((file) => !byDate.includes(file) && !shown.includes(file))).toEqual([])
  })

  test('JSON is parsed in one place, because JSON.parse may get member names wrong', () => {
    // A sandbox contains only its own folder, and the names in its messages are always the same.
    const others = files.filter((file) => !file.startsWith('sandbox/guest/'))
    const parsing = others.filter((file) => readFileSync(join(source, file), 'utf8').includes('JSON.parse('))
    expect(parsing).toEqual(['lib/parse-json.ts'])
  })

  test('no file of the source is longer than 500 lines', () => {
    const long = files.filter((file) => readFileSync(join(source, file), 'utf8').split('\n').length > 501)
    expect(long).toEqual([])
  })
})

test('the dashboard imports only the types of the admin contract from the gateway', () => {
  const dashboard = join(import.meta.dirname, '../web/src')
  const outside = globSync('**/*.{ts,tsx}', { cwd: dashboard }).flatMap((file) => {
    const text = readFileSync(join(dashboard, file), 'utf8')
    const imports = text.matchAll(/import\s+(type\s+)?[^'"]*from '((?:\.\.\/)+src\/[^']+)'/g)
    return [...imports].map(([, type, path = '']) => ({
      file,
      path: path.replace(/^(\.\.\/)+/, ''),
      typesOnly: type !== undefined,
    }))
  })
  expect(outside.length).toBeGreaterThan(20)
  expect(outside.filter(({ path, typesOnly }) => path !== 'src/serve/admin/contract.ts' || !typesOnly)).toEqual([])
})
