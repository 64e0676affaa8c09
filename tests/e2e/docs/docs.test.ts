import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Commands, startCommands } from '../../fixtures/commands/commands.ts'
import { anchorsOf, linksOf, pathsOf } from './anchors.ts'
import { type Block, storiesOf } from './blocks.ts'
import { commandsIn, complaintOf } from './commands.ts'
import { loadShown } from './configuration.ts'
import { isTold, tell } from './story.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const examples = globSync('examples/**/README.md', { cwd: root }).sort()
const pages = ['README.md', ...globSync(['docs/*.md', 'docs/operations/*.md'], { cwd: root }).sort(), ...examples]
const textOf = (page: string): string => readFileSync(join(root, page), 'utf8')
const blocksOf = (page: string): Block[] => storiesOf(textOf(page)).flat()

/** On these pages nothing is run, so that their blocks need not say so. */
const onlyRead = ['README.md', 'docs/clients.md']

/** Units of systemd hold commands as well. */
const hasCommands = ({ language }: Block): boolean => language === 'sh' || language === 'ini'

/** Generated for those who work on Toolway, and linked from CONTRIBUTING.md. */
const notForReaders = ['docs/requirements.md']

test.each(['docs', 'docs/operations'])('every page of %s is in its index', (folder) => {
  const index = linksOf(textOf(`${folder}/README.md`)).map((link) => link.replace(/#.*/, ''))
  const own = pages.filter((page) => dirname(page) === folder && !notForReaders.includes(page))
  expect(own.map((page) => basename(page)).filter((page) => page !== 'README.md' && !index.includes(page))).toEqual([])
})

test('README.md has at most 150 lines, and each release in CHANGELOG.md at most 60', () => {
  const lines = (text: string) => text.trimEnd().split('\n').length
  const [, ...releases] = textOf('CHANGELOG.md').split(/^(?=## )/m)
  expect(lines(textOf('README.md'))).toBeLessThanOrEqual(150)
  expect(releases.filter((release) => lines(release) > 60).map((release) => release.split('\n')[0])).toEqual([])
})

describe.each(pages)('%s', (page) => {
  const blocks = blocksOf(page)

  test('every block of commands says whether it is run', () => {
    const silent = blocks
      .filter(hasCommands)
      .filter(({ marks }) => !marks.includes('test') && !marks.includes('no-test'))
    if (!onlyRead.includes(page)) expect(silent.map(({ line }) => line)).toEqual([])
  })

  test('every command exists, with its options', async () => {
    for (const { text, line } of blocks.filter(hasCommands)) {
      for (const words of commandsIn(text)) expect(await complaintOf(words), `line ${line}: ${words}`).toBeUndefined()
    }
    for (const [, code = ''] of textOf(page).matchAll(/`(toolway [^`]+)`/g)) {
      const [words = []] = commandsIn(code.replaceAll('\n', ' '))
      expect(await complaintOf(words, { inProse: true }), code).toBeUndefined()
    }
  })

  test('every configuration loads, with nothing to warn about', async () => {
    const shown = blocks.filter(({ language, marks }) => language === 'yaml' && !marks.includes('no-test'))
    for (const { line, text } of shown) {
      const { warnings } = await loadShown(text)
      expect({ line, warnings }).toEqual({ line, warnings: [] })
    }
  })

  test('every link leads somewhere', () => checkLinks(page))
})

const onlyLinks = globSync(['*.md', 'docs/{decisions,errors,releases}/*.md', '.github/**/*.md', 'bench/*.md'], {
  cwd: root,
})

test.each(onlyLinks.filter((page) => !pages.includes(page)).sort())('every link of %s leads somewhere', checkLinks)

function checkLinks(page: string): void {
  for (const link of linksOf(textOf(page))) {
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? page : join(dirname(page), path)
    expect(existsSync(join(root, target)), link).toBe(true)
    if (anchor !== undefined) expect(anchorsOf(textOf(target)), link).toContain(anchor)
  }
}

test.each([
  'CONTRIBUTING.md',
  'tooling/requirements/requirements.yaml',
  ...globSync('docs/decisions/*.md', { cwd: root }).sort(),
])('every file that %s names exists', (page) => {
  // Decisions name files of the source without their folder; requirements link from docs/requirements.md.
  const missing = pathsOf(textOf(page)).filter(
    (path) => !['.', 'src', 'docs'].some((base) => existsSync(join(root, base, path))),
  )
  expect(missing).toEqual([])
})

test.each([...globSync('src/*/README.md', { cwd: root }), 'docs/architecture.md'].sort())(
  'every source file that %s names exists',
  (page) => {
    const files = globSync('src/**/*.{ts,py}', { cwd: root })
    const named = [...textOf(page).matchAll(/(?<![\w./-])[\w/-]+\.(?:ts|py)\b/g)].map(([name]) => name)
    // A README names the files of its folder without the path.
    expect(named.filter((name) => !files.some((file) => file.endsWith(`/${name}`)))).toEqual([])
  },
)

/**
 * Each story by the page it stands on and the line it begins in, with the pages that continue it. Those of examples need
 * the files beside them: tests/e2e/examples.
 */
const stories = pages
  .filter((page) => pageBefore(page) === undefined && !examples.includes(page))
  .flatMap((page) => {
    const [first = [], ...others] = storiesOf(textOf(page))
    const continued = pages.filter((other) => pageBefore(other) === page).flatMap(blocksOf)
    return [[...first, ...continued], ...others]
      .map((blocks) => blocks.filter(isTold))
      .filter((blocks) => blocks.length > 0)
      .map((blocks) => ({ blocks, name: `${page}:${blocks[0]?.line}` }))
  })

function pageBefore(page: string): string | undefined {
  const [, before] = /^<!-- continues (\S+) -->$/m.exec(textOf(page)) ?? []
  return before && join(dirname(page), before)
}

test('files and outputs are shown only where something is run', () => {
  const idle = stories.filter(({ blocks }) => !blocks.some(({ marks }) => marks.includes('test')))
  expect(idle.map(({ name }) => name)).toEqual([])
  expect(stories.length).toBeGreaterThan(10)
})

let commands: Commands
beforeAll(() => {
  commands = startCommands()
})
afterAll(() => commands[Symbol.asyncDispose]())

/** A story takes seconds, and much longer where all tests run at the same time on few cores. */
const timeoutMs = 180_000

test.concurrent.each(stories)(
  'the commands of $name have the documented results',
  ({ blocks }) => tell(blocks, commands),
  timeoutMs,
)
