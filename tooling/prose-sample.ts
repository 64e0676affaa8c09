import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

/**
 * Prints comments, messages and paragraphs of the documentation, chosen at random, for somebody to read for natural
 * English: `node tooling/prose-sample.ts [--seed 1] [--comments 40] [--messages 40] [--paragraphs 20]`. The same seed
 * gives the same sample of the same text.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    comments: { type: 'string', default: '40' },
    messages: { type: 'string', default: '40' },
    paragraphs: { type: 'string', default: '20' },
  },
})
const root = join(import.meta.dirname, '..')

interface Passage {
  readonly where: string
  readonly text: string
}

const isTest = /\.(test|fixture|contract|property)\.tsx?$/
const sources = globSync(['src/**/*.ts', 'web/src/**/*.{ts,tsx}'], { cwd: root }).filter((file) => !isTest.test(file))
const comments: Passage[] = []
const messages: Passage[] = []

/** Text that people read has several words, at least one of them in lower case. */
const isMessage = (text: string): boolean =>
  /^["'“`$]?[A-Za-z{]/.test(text) && text.split(/\s+/).length >= 4 && / [a-z]{2,} /.test(text) && !/[;=]|=>/.test(text)

for (const file of sources.sort()) {
  const text = readFileSync(join(root, file), 'utf8')
  const where = (at: number) => `${file}:${text.slice(0, at).split('\n').length}`

  // Consecutive lines that begin with // are one comment.
  for (const { 0: found, index } of text.matchAll(/^[ \t]*\/\*\*?[\s\S]*?\*\/|(?:^[ \t]*\/\/ .*\n)+/gm)) {
    const plain = found.replace(/^\s*(?:\/\*\*?|\*\/|\*|\/\/)[ \t]?|\s*\*\/$/gm, '').trim()
    if (/biome-ignore|@ts-|^https?:/.test(plain) || plain.split(/\s+/).length < 4) continue
    comments.push({ where: where(index), text: plain })
  }

  // String literals, templates, and the text between tags of a page.
  const code = text.replace(/\/\*[\s\S]*?\*\/|^[ \t]*\/\/ .*$/gm, (comment) => comment.replace(/[^\n]/g, ' '))
  const literal = /'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`|>([^<>{}]+)</g
  for (const { 1: string, 2: template, 3: shown, index } of code.matchAll(literal)) {
    const message = (string ?? template ?? (file.endsWith('x') ? shown : undefined) ?? '').replace(/\s+/g, ' ').trim()
    if (isMessage(message)) messages.push({ where: where(index), text: message })
  }
}

const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...globSync(['docs/**/*.md', 'src/*/README.md'], { cwd: root }),
]
const paragraphs: Passage[] = pages
  // Made from the test titles.
  .filter((page) => page !== 'docs/requirements.md')
  .sort()
  .flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8').replace(/^```[\s\S]*?^```/gm, '')
    return text
      .split(/\n{2,}|\n(?=[-*|] |\d+\. )/)
      .map((paragraph) => paragraph.trim())
      .filter((paragraph) => !/^[#<|]/.test(paragraph) && paragraph.split(/\s+/).length >= 8)
      .map((paragraph) => ({ where: page, text: paragraph }))
  })

/** A 32-bit xorshift generator: small, and the same on every machine. */
let state = Number(values.seed) * 2_654_435_761 + 1 || 1
function random(below: number): number {
  state ^= state << 13
  state ^= state >>> 17
  state ^= state << 5
  return (state >>> 0) % below
}

function print(title: string, all: Passage[], wanted: number): void {
  console.log(`\n## ${title} (${wanted} of ${all.length})\n`)
  for (let number = 1; number <= wanted && all.length > 0; number++) {
    const [{ where, text }] = all.splice(random(all.length), 1) as [Passage]
    console.log(`${number}. [${where}] ${text.replace(/\s*\n\s*/g, ' ')}\n`)
  }
}

print('Comments', comments, Number(values.comments))
print('Messages', messages, Number(values.messages))
print('Paragraphs', paragraphs, Number(values.paragraphs))
