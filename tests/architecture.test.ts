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

const base = ['core', 'json', 'lib']

/**
 * Which folder may import which: cli, index → admin → runtime → features → config types, wire, process, egress → core, json, lib.
 * `config types` means type imports only. Features do not import one another: `runtime` hands them functions.
 */
const table: Record<string, readonly string[]> = {
  lib: [],
  json: ['lib'],
  core: ['json', 'lib'],
  process: base,
  egress: base,
  config: [...base, 'egress', 'process'],
  clients: [...base, 'config'],
  wire: base,
  upstream: [...base, 'config types', 'egress', 'process', 'wire'],
  catalog: [...base, 'config types'],
  policy: [...base, 'config types', 'egress'],
  pipeline: [...base, 'config types'],
  stores: [...base, 'config types', 'egress'],
  audit: [...base, 'config types'],
  telemetry: [...base, 'config types', 'egress'],
  tools: [...base, 'config types', 'egress', 'process'],
  serve: [...base, 'config types', 'egress', 'wire'],
  chat: [...base, 'config types', 'egress'],
  sandbox: [...base, 'config types', 'process'],
  runtime: [...base, 'config', 'clients', 'egress', 'process', 'wire', ...features],
  admin: [...base, 'config', 'clients', 'egress', 'process', 'wire', 'runtime', ...features],
  cli: [
    ...base,
    'admin',
    'config',
    'clients',
    'policy',
    'stores',
    'audit',
    'telemetry',
    'catalog',
    'egress',
    'process',
    'runtime',
  ],
  'index.ts': [...base, 'config', 'chat', 'serve', 'telemetry', 'tools', 'runtime', 'admin'],
}

/** The only import cycle, and only of types: a call names its entry, and an entry runs calls. */
const exception = { from: 'core/entry.ts', to: 'core/call.ts' }

interface Import {
  readonly from: string
  readonly to: string
  readonly typesOnly: boolean
}

const isTest = (file: string) => /\.(test|fixture)\.ts$/.test(file)
const files = globSync('**/*.ts', { cwd: source }).filter((file) => !isTest(file))
const folderOf = (file: string) => file.split('/')[0] as string

/** Every import and re-export, type-only or not, lazy ones included. */
function importsOf(file: string): Import[] {
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

const all = files.flatMap(importsOf)

function allowed({ from, to, typesOnly }: Import): boolean {
  if (folderOf(from) === folderOf(to)) return true
  const may = table[folderOf(from)] ?? []
  return may.includes(folderOf(to)) || (typesOnly && may.includes(`${folderOf(to)} types`))
}

describe('imports between folders', () => {
  test('every folder is in the table', () => {
    expect(files.map(folderOf).filter((name) => !(name in table))).toEqual([])
  })

  test('imports run one way', () => {
    expect(all.filter((found) => !allowed(found)).map(({ from, to }) => `${from} -> ${to}`)).toEqual([])
  })

  test('there are no import cycles', () => {
    const next = Map.groupBy(
      all.filter(({ from, to }) => from !== exception.from || to !== exception.to),
      ({ from }) => from,
    )
    const done = new Set<string>()
    const cycle = (file: string, path: readonly string[]): readonly string[] | undefined => {
      if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
      if (done.has(file)) return undefined
      for (const { to } of next.get(file) ?? []) {
        const found = cycle(to, [...path, file])
        if (found) return found
      }
      done.add(file)
      return undefined
    }
    for (const file of files) expect(cycle(file, []), file).toBeUndefined()
  })

  test('durations are measured by the monotonic clock', () => {
    // Ages of data that an earlier run stored or that is shown with its date, and conversions between the clocks.
    const byDate = [
      'upstream/listing/server-listing.ts',
      'admin/calls/calls.ts',
      'admin/overview/figures.ts',
      'admin/inbox/inbox.ts',
      'admin/policy/policy.ts',
      'admin/session/credentials.ts',
      'telemetry/history/call-history.ts',
      'telemetry/traces/call-spans.ts',
      'stores/postgres/shipper.ts',
      'cli/commands/approvals.ts',
      'cli/doctor/credentials.ts',
      'cli/doctor/port.ts',
    ]
    const measured = /clock\.now\(\) [-+]|[-+] clock\.now\(\)|(?:began|begun|started|start) = clock\.now\(\)/
    const wrong = files.filter((file) => measured.test(readFileSync(join(source, file), 'utf8')))
    // The dates of a reload and of a breaker's state, which are shown to users.
    const shown = ['runtime/reload.ts', 'pipeline/breaker.ts']
    expect(wrong.filter((file) => !byDate.includes(file) && !shown.includes(file))).toEqual([])
  })

  test('JSON is parsed in one place, because JSON.parse may get member names wrong', () => {
    // A sandbox contains only its own folder, and the names in its messages are always the same.
    const others = files.filter((file) => !file.startsWith('sandbox/guest/'))
    const parsing = others.filter((file) => readFileSync(join(source, file), 'utf8').includes('JSON.parse('))
    expect(parsing).toEqual(['json/parse-json.ts'])
  })

  test('no file of the source is longer than 500 lines', () => {
    const long = files.filter((file) => readFileSync(join(source, file), 'utf8').split('\n').length > 501)
    expect(long).toEqual([])
  })
})

test('G10: no figure of the dashboard is zero because it is not loaded yet', () => {
  const dashboard = join(import.meta.dirname, '../web/src')
  const files = globSync('{api,pages,shell,config-edit}/**/*.{ts,tsx}', { cwd: dashboard })
  expect(files.length).toBeGreaterThan(50)
  const wrong = files.filter((file) => /\?\.[\w.]+ (\?\?|\|\|) 0/.test(readFileSync(join(dashboard, file), 'utf8')))
  expect(wrong).toEqual([])
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
  expect(outside.filter(({ path, typesOnly }) => path !== 'src/admin/contract.ts' || !typesOnly)).toEqual([])
})
