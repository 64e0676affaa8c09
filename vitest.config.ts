import { matchesGlob } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Tests of random cases that `npm run test:deep` repeats with many more of them. */
const properties = [
  'src/**/*.property.test.ts',
  'src/**/*.fuzz.test.ts',
  'src/audit/redact/{conceal,formats,redactor}.test.ts',
  'src/audit/{search/search,verify/verify,write/{audit-log,event-body}}.test.ts',
  'src/catalog/{names,pins/definition-snapshot,resolve,scan/scan,uri-template}.test.ts',
  'src/chat/constrain/{gbnf/pattern,sanitize-schema,strict/strictify}.test.ts',
  'src/chat/{repair/repair,stream/{content-reader,thinking}}.test.ts',
  'src/cli/table.words.test.ts',
  'src/clients/connection-backups.test.ts',
  'src/config/edit/{edit-text,json-edit,servers-text,servers-text.syntax,toml-edit}.test.ts',
  'src/lib/{canonical-json,json-text.scan,latency-histogram,proxy,seal,wildcard}.test.ts',
  'src/pipeline/{cache/canonical,refusals}.test.ts',
  'src/policy/{agents,patterns,arguments/{hostile,keyword-checks},guards/{path,sql-random}}.test.ts',
  'src/serve/http/{connections,request}.test.ts',
  'src/serve/mcp-legacy/tool-list.compilable.test.ts',
  'src/stores/{buckets,cache}.test.ts',
  'src/tools/{code/answer,meta/execute-tools,sinks/file}.test.ts',
  'src/upstream/{listing/definitions,requests/served-uris}.test.ts',
  'src/upstream/oauth/{authorization.challenge,credential}.test.ts',
  'src/upstream/transports/http1/{differential,response-reader}.test.ts',
  'src/wire/{bytes.lines,check-members,message,message.envelope,modern,sse}.test.ts',
  'tests/e2e/crossings/{bytes,exact-arguments}.test.ts',
  'tests/e2e/go-server/go-server.test.ts',
]

/** Tests beside the code that start programs: servers, sandboxes, databases, the command line. */
const programs = ['src/**/*.program.test.ts', 'tests/{,contract/}*.program.test.ts']

/** Small files that take long: without results of an earlier run, vitest starts large files first. */
const long = ['tests/e2e/chaos/chaos.test.ts', 'tests/e2e/fleet/outage.test.ts', 'src/sandbox/abuse.program.test.ts']

/** Tests that collect all garbage, which takes longer the more modules their worker has loaded before. */
const collecting = [
  'src/cli/memory.test.ts',
  'src/runtime/reload.generations.test.ts',
  'src/serve/admin/live-events.test.ts',
  'src/serve/http/{bodies,connections,connections.closing}.test.ts',
  'src/stores/cache.test.ts',
]

const first = [...collecting, ...long]
const isFirst = ({ moduleId }: TestSpecification): boolean => first.some((file) => matchesGlob(moduleId, `**/${file}`))

/** Starts the longest files of a project first, so that none runs alone at the end. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const byProject = Map.groupBy(sorted, ({ project }) => project)
    return [...byProject.values()].flatMap((own) => [...own.filter(isFirst), ...own.filter((file) => !isFirst(file))])
  }
}

const beside = {
  // Tests share nothing but what they import, and importing it again for each file takes longer than many a test.
  isolate: false,
  // Node loads the sources, as it does in a checkout: that takes half as long as transforming and running them.
  experimental: { viteModuleRunner: false, nodeLoader: false },
  // Most garbage of a test is young, and several workers share the cores: a collection in one thread takes less CPU time.
  execArgv: [
    '--min-semi-space-size=64',
    '--max-semi-space-size=64',
    '--initial-old-space-size=512',
    '--single-threaded-gc',
  ],
  // A hang, not slowness: a busy machine takes a multiple of the usual time.
  expect: { poll: { timeout: 30_000 } },
  testTimeout: 120_000,
}

// Fast tests beside the code, those with programs of their own, stories with real servers, the official conformance
// suite, the dashboard in a real browser, and the long loops of `npm run test:deep`.
export default defineConfig({
  test: {
    // A test often waits for processes of its own: three at once keep two cores busy.
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
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'tests/*.test.ts', 'tests/contract/**/*.test.ts'],
          exclude: programs,
          globalSetup: ['tests/programs.setup.ts'],
          ...beside,
        },
      },
      {
        test: {
          name: 'web',
          // Vite itself loads them, because the dashboard uses its imports of text.
          include: ['web/src/**/*.test.ts'],
          isolate: false,
          testTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'programs',
          include: programs,
          globalSetup: ['tests/programs.setup.ts', 'tests/parts.setup.ts'],
          ...beside,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['tests/e2e/**/*.test.ts'],
          globalSetup: ['tests/programs.setup.ts', 'tests/e2e.setup.ts'],
          ...beside,
          // Commands and servers are processes that take a while to start.
          expect: { poll: { timeout: 40_000 } },
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'conformance',
          include: ['tests/conformance/**/*.test.ts'],
          globalSetup: ['tests/programs.setup.ts'],
          ...beside,
          hookTimeout: 180_000,
        },
      },
      {
        test: {
          name: 'browser',
          include: ['tests/browser/**/*.test.ts'],
          globalSetup: ['tests/programs.setup.ts', 'tests/browser/build.setup.ts'],
          ...beside,
          // axe at all sizes and in both themes takes minutes.
          testTimeout: process.env.TOOLWAY_TEST_RUNS === 'many' ? 900_000 : 120_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'deep',
          include: ['tests/deep/**/*.test.ts', ...properties],
          globalSetup: ['tests/programs.setup.ts', 'tests/e2e.setup.ts'],
          // Many random cases instead of a few (tests/fixtures/runs.ts).
          env: { TOOLWAY_TEST_RUNS: 'many' },
          testTimeout: 1_800_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
