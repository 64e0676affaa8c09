import { matchesGlob } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Tests of random cases that `npm run test:deep` repeats with many more of them. */
const properties = [
  'src/**/*.property.test.ts',
  'src/**/*.fuzz.test.ts',
  'src/audit/redact/{conceal,formats,redactor}.test.ts',
  'src/audit/{record.events,search/search,verify/verify,write/audit-log}.test.ts',
  'src/catalog/{names,pins/definition-snapshot,resolve,scan/scan,uri-template}.test.ts',
  'src/chat/constrain/{gbnf/pattern,sanitize-schema,strict/strictify}.test.ts',
  'src/chat/{repair/repair,stream/{content-reader,thinking}}.test.ts',
  'src/cli/table.words.test.ts',
  'src/clients/connection-backups.test.ts',
  'src/config/edit/{edit-text,edit-text.servers,edit-text.servers-syntax,json-edit,toml-edit}.test.ts',
  'src/json/{canonical-json,json-text.scan,parse-json}.test.ts',
  'src/egress/proxy.test.ts',
  'src/lib/{latency-histogram,seal,wildcard}.test.ts',
  'src/pipeline/{cache/canonical,refusals}.test.ts',
  'src/policy/{agents,patterns,arguments/{hostile,keyword-checks},guards/{path,sql,sql-random}}.test.ts',
  'src/serve/http/{connections,request}.test.ts',
  'src/serve/mcp-legacy/tool-list.compilable.test.ts',
  'src/stores/{buckets,cache}.test.ts',
  'src/tools/{code/answer,meta/execute-tools,sinks/file}.test.ts',
  'src/upstream/{listing/definitions,requests/served-uris}.test.ts',
  'src/upstream/oauth/{authorization.challenge,credential}.test.ts',
  'src/upstream/transports/http1/{differential,response-reader}.test.ts',
  'src/wire/{bytes.lines,check-members,message,message.envelope,param-headers,sse}.test.ts',
  'tests/e2e/crossings/{bytes,exact-arguments}.test.ts',
  'tests/e2e/go-server/go-server.test.ts',
]

/** Tests beside the code that start programs: servers, sandboxes, databases, the command line. */
const programs = ['src/**/*.program.test.ts', 'tests/{,contract/}*.program.test.ts']

/** Stories that take the most time: `npm run test:long`. */
const long = ['tests/**/*.long.test.ts']

/** Small files that take long: without results of an earlier run, vitest starts large files first. */
const early = [
  'tests/e2e/chaos/chaos.long.test.ts',
  'tests/e2e/fleet/outage.long.test.ts',
  'src/sandbox/abuse.program.test.ts',
]

/** Stories that wait for many seconds: they would run alone at the end. */
const waiting = [
  'tests/conformance/{client,server}.test.ts',
  'tests/browser/real/keys.test.ts',
  'tests/e2e/docs/docs.test.ts',
  'tests/e2e/fleet/{ownership,streams}.test.ts',
  'tests/e2e/real-servers/{pagination,timeouts}.test.ts',
]

/** Tests that collect all garbage, which takes longer the more modules their worker has loaded before. */
const collecting = [
  'src/cli/memory.test.ts',
  'src/runtime/reload.generations.test.ts',
  'src/admin/live-events.test.ts',
  'src/serve/http/{bodies,connections,connections.closing}.test.ts',
  'src/stores/cache.test.ts',
  'src/wire/bytes.lines.test.ts',
  'tests/e2e/overload/slow-reader.long.test.ts',
  'tests/e2e/reload/memory.test.ts',
]

const isAmong =
  (globs: readonly string[]) =>
  ({ moduleId }: TestSpecification): boolean =>
    globs.some((glob) => matchesGlob(moduleId, `**/${glob}`))

const isFirst = isAmong([...collecting, ...early])
const isWaiting = isAmong(waiting)

/** Tests with real servers or a browser: they wait most of their time. */
const isStory = isAmong(['tests/browser/**/*.test.ts', 'tests/e2e/**/*.test.ts', 'tests/conformance/**/*.test.ts'])

/**
 * Starts the longest files first, so that none runs alone at the end. Stories and tests that compute alternate over the
 * whole run: the latter use the cores while the former wait.
 */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const byProject = Map.groupBy(sorted, ({ project }) => project)
    return [...byProject.values()].flatMap((own) => {
      const rest = own.filter((file) => !isFirst(file))
      const stories = rest.filter(isStory)
      return [
        ...own.filter(isFirst),
        ...spread(
          [...stories.filter(isWaiting), ...stories.filter((file) => !isWaiting(file))],
          rest.filter((file) => !isStory(file)),
        ),
      ]
    })
  }
}

/** Both lists in their order, each evenly spread over the result. */
function spread<T>(one: readonly T[], other: readonly T[]): T[] {
  const placed = [one, other].flatMap((list) => list.map((item, index) => ({ item, place: (index + 1) / list.length })))
  return placed.sort((a, b) => a.place - b.place).map(({ item }) => item)
}

const isMany = process.env.TOOLWAY_TEST_RUNS === 'many'

const beside = {
  // Tests share nothing but what they import, and importing it again for each file takes longer than many a test.
  isolate: false,
  // Node loads the sources, as it does in a checkout: that takes half as long as transforming and running them.
  experimental: { viteModuleRunner: false, nodeLoader: false },
  environment: './tests/environment.ts',
  execArgv: [
    // Most garbage of a test is young, and several workers share the cores: a collection in one thread takes less CPU time.
    '--min-semi-space-size=64',
    '--max-semi-space-size=64',
    '--initial-old-space-size=512',
    '--single-threaded-gc',
    // A worker runs most code in a few tests only. V8 would optimize much of it too early, and compile again what it has
    // forgotten because no test ran it for a while.
    '--invocation-count-for-maglev=4000',
    '--invocation-count-for-turbofan=40000',
    '--no-flush-bytecode',
    // Optimizing WebAssembly takes longer than the short programs of tests run in it.
    '--wasm-tiering-budget=2000000000',
  ],
  // A hang, not slowness: a busy machine takes a multiple of the usual time, and processes take a while to start.
  expect: { poll: { timeout: 40_000 } },
  // With many cases, a page is shown to axe at all sizes and in both themes.
  testTimeout: isMany ? 900_000 : 120_000,
  hookTimeout: 180_000,
}

interface Kind {
  readonly name: string
  readonly include: string[]
  readonly exclude?: string[]
  readonly setup?: string[]
}

const kinds: Kind[] = [
  // Fast tests beside the code.
  { name: 'unit', include: ['src/**/*.test.ts', 'tests/*.test.ts', 'tests/contract/**/*.test.ts'], exclude: programs },
  { name: 'web', include: ['web/src/**/*.test.ts'] },
  { name: 'programs', include: programs, setup: ['tests/parts.setup.ts'] },
  // Stories with real servers, the official conformance suite, and the dashboard in a real browser.
  { name: 'e2e', include: ['tests/e2e/**/*.test.ts'], setup: ['tests/e2e.setup.ts'] },
  { name: 'conformance', include: ['tests/conformance/**/*.test.ts'] },
  { name: 'browser', include: ['tests/browser/**/*.test.ts'], setup: ['tests/browser/build.setup.ts'] },
]

/** As one project: a worker belongs to one project, and a new one loads and compiles everything again. */
const together = {
  include: kinds.flatMap(({ include }) => include),
  setup: kinds.flatMap(({ setup = [] }) => setup),
}

const withoutLong = (kind: Kind): Kind => ({ ...kind, exclude: [...(kind.exclude ?? []), ...long] })

// `npm test` runs all kinds as one project. The last project has the long loops of `npm run test:deep`.
export default defineConfig({
  test: {
    // A test often waits for processes of its own: more at once than cores keep these busy.
    maxWorkers: 3,
    sequence: { sequencer: LongFirst },
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      exclude: ['src/**/*.{test,fixture}.ts'],
      // Of `npm run coverage`, which sees the tests beside the code alone: what runs in other processes is not counted.
      thresholds: { lines: 90 },
    },
    projects: [
      ...[
        ...(process.env.TOOLWAY_TEST_TOGETHER ? [{ name: 'all', ...together }] : kinds).map(withoutLong),
        { name: 'long', ...together, include: long },
      ].map(({ setup = [], ...settings }) => ({
        test: {
          ...beside,
          ...settings,
          globalSetup: ['tests/programs.setup.ts', ...setup, 'tests/temporary.setup.ts'],
        },
      })),
      {
        test: {
          name: 'deep',
          include: ['tests/deep/**/*.test.ts', ...properties],
          globalSetup: ['tests/programs.setup.ts', 'tests/e2e.setup.ts', 'tests/temporary.setup.ts'],
          // Many random cases instead of a few (tests/fixtures/runs.ts).
          env: { TOOLWAY_TEST_RUNS: 'many' },
          testTimeout: 1_800_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
