import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * `npm run test:near [-- PATH…] [--project NAME] [--list]`: runs the tests that can be affected by changed files, which
 * are the given files and folders, or else what differs from `main`, committed or not. A test is affected if it can
 * reach a changed file over imports, or over paths that it names, such as programs that it starts.
 */

const root = fileURLToPath(new URL('..', import.meta.url))
const words = process.argv.slice(2)
const lists = words.includes('--list')
const options = words.filter((word, index) => word.startsWith('--') || words[index - 1] === '--project')
const named = words.filter((word) => !options.includes(word))

/** Every test depends on these. */
const everywhere = /^(package(-lock)?\.json|vitest\.config\.ts|tsconfig\.json|tests\/[\w-]+\.setup\.ts)$/
/** Tests that read files which are not modules, such as pages and deployment files. */
const readers = [
  'tests/*.test.ts',
  'tests/e2e/docs/*.test.ts',
  'src/config/example.test.ts',
  'src/cli/commands/clients-page.test.ts',
]

const isTest = (file: string): boolean => file.endsWith('.test.ts') && !file.startsWith('tests/deep/')
const isModule = (file: string): boolean => /^(src|tests|web\/src|tooling)\/.*\.(ts|tsx)$/.test(file)

const git = (...args: string[]): string[] =>
  execFileSync('git', args, { cwd: root, encoding: 'utf8' })
    .split('\n')
    .filter((line) => line !== '')

/** Since the branch left `main`; on `main` itself, what is not committed. */
function changedSinceMain(): string[] {
  const [base = 'HEAD'] = spawnSync('git', ['merge-base', 'HEAD', 'main'], {
    cwd: root,
    encoding: 'utf8',
  }).stdout.split('\n')
  return [
    ...git('diff', '--name-only', base === '' ? 'HEAD' : base),
    ...git('ls-files', '--others', '--exclude-standard'),
  ]
}

/** The files at a path, which may be a folder or be deleted. */
function filesAt(path: string): string[] {
  const file = relative(root, resolve(process.env.INIT_CWD ?? process.cwd(), path))
  const isFolder = existsSync(join(root, file)) && statSync(join(root, file)).isDirectory()
  return isFolder ? git('ls-files', '--cached', '--others', '--exclude-standard', file) : [file]
}

/** The modules that name each file: every relative path in quotes counts, except in imports of types alone. */
function readImporters(): Map<string, Set<string>> {
  const importers = new Map<string, Set<string>>()
  for (const file of globSync(['src/**/*.ts', 'tests/**/*.ts', 'web/src/**/*.{ts,tsx}', 'tooling/**/*.ts'], {
    cwd: root,
  })) {
    const text = readFileSync(join(root, file), 'utf8').replaceAll(/^(?:import|export) type [^'"]*? from .*$/gm, '')
    for (const [, path = ''] of text.matchAll(/['"`](\.{1,2}\/[^'"`\n]+|[\w-]+\.(?:ts|tsx|py))['"`]/g))
      add(join(dirname(file), path), file)
    // Paths from the root, by which tests name programs.
    for (const [, path = ''] of text.matchAll(/['"`]((?:src|tests)\/[^'"`\n*]+\.ts)['"`]/g)) add(path, file)
  }
  function add(to: string, from: string): void {
    importers.set(to, (importers.get(to) ?? new Set()).add(from))
  }
  return importers
}

/** The tests that can reach one of the files. */
function affected(changed: readonly string[]): string[] {
  const tests = globSync(['src/**/*.test.ts', 'web/src/**/*.test.ts', 'tests/**/*.test.ts'], { cwd: root }).filter(
    isTest,
  )
  if (changed.some((file) => everywhere.test(file))) return tests
  const importers = readImporters()
  const reached = new Set(changed)
  for (const file of changed.filter((file) => !isModule(file))) {
    // A file that is not a module belongs to the modules beside it; elsewhere, to the tests that read such files.
    const beside = globSync('*.ts', { cwd: join(root, dirname(file)) }).map((name) => join(dirname(file), name))
    for (const one of beside.length > 0 ? beside : globSync(readers, { cwd: root })) reached.add(one)
  }
  // The dashboard is built, and a browser shows it.
  if (changed.some((file) => file.startsWith('web/'))) reached.add('tests/browser/chromium.ts')
  for (const file of reached) for (const importer of importers.get(file) ?? []) reached.add(importer)
  return tests.filter((test) => reached.has(test))
}

const changed = [...new Set(named.length > 0 ? named.flatMap(filesAt) : changedSinceMain())]
const tests = affected(changed.map((file) => file.split(sep).join('/'))).sort()
if (lists) console.log(tests.join('\n'))
else if (tests.length === 0)
  console.log(`No test depends on ${changed.length === 0 ? 'unchanged files' : changed.join(', ')}.`)
else {
  console.log(
    `${tests.length} test files depend on ${changed.length} changed ${changed.length === 1 ? 'file' : 'files'}.`,
  )
  const vitest = join(root, 'node_modules/.bin/vitest')
  process.exitCode =
    spawnSync(vitest, ['run', '--passWithNoTests', ...options, ...tests], { cwd: root, stdio: 'inherit' }).status ?? 1
}
