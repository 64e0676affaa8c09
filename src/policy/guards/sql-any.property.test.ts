import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../tests/fixtures/runs.ts'
import { compileGuards } from './index.ts'

/**
 * How each database splits a text, told independently of the guard: one expression per dialect whose alternatives are
 * tried in turn. Code is whatever the last alternative takes.
 */
const any = String.raw`[\s\S]`
const single = `'(?:[^']|'')*(?:'|$)`
const escaped = String.raw`'(?:[^'\\]|\\${any}|'')*(?:'|\\?$)`
const double = `"(?:[^"]|"")*(?:"|$)`
const doubleEscaped = String.raw`"(?:[^"\\]|\\${any}|"")*(?:"|\\?$)`
const backquoted = '`(?:[^`]|``)*(?:`|$)'
const dollar = String.raw`(?<![\w$\x80-\uffff])\$(?<tag>(?:[A-Za-z_]\w*)?)\$${any}*?(?:\$\k<tag>\$|$)`
const brackets = String.raw`\[[^\]]*(?:\]|$)`
const doubledBrackets = String.raw`\[(?:[^\]]|\]\])*(?:\]|$)`
const alternative = String.raw`(?<![\w$])[nN]?[qQ]'(?:\[${any}*?(?:\]'|$)|(?<mark>[^\s[({<])${any}*?(?:\k<mark>'|$))`
const flat = String.raw`\/\*${any}*?(?:\*\/|$)`
const flatUnlessRun = String.raw`\/\*(?!M?!)${any}*?(?:\*\/|$)`
const dashes = '--[^\\n]*'
const dashesReturn = '--[^\\n\\r]*'
const spaced = String.raw`--(?=[\0-\x20]|$)[^\n]*`
const hash = '#[^\\n]*'

interface Splitter {
  readonly quotes: readonly string[]
  readonly comments: readonly string[]
  readonly nested?: boolean
}

const mysqlComments = [spaced, hash, flatUnlessRun]
const splitters: Readonly<Record<string, Splitter>> = {
  postgres: {
    quotes: [`(?<![\\w$])[eE]${escaped}`, single, double, dollar],
    comments: [dashesReturn],
    nested: true,
  },
  'postgres, old strings': { quotes: [escaped, double, dollar], comments: [dashesReturn], nested: true },
  mysql: { quotes: [escaped, doubleEscaped, backquoted], comments: mysqlComments },
  'mysql, ANSI quotes': { quotes: [escaped, double, backquoted], comments: mysqlComments },
  'mysql, no backslash': { quotes: [single, double, backquoted], comments: mysqlComments },
  sqlite: { quotes: [single, double, backquoted, brackets], comments: [dashes, flat] },
  'sql server': { quotes: [single, double, doubledBrackets], comments: [dashes], nested: true },
  oracle: { quotes: [alternative, single, double], comments: [dashes, flat] },
}

/** The code of a text with every quoted part as `q` and every comment as a space. */
function codeOf(text: string, { quotes, comments, nested = false }: Splitter): string {
  const token = new RegExp(`(?<quote>${quotes.join('|')})|(?<comment>${comments.join('|')})|${any}`, 'y')
  let code = ''
  let at = 0
  while (at < text.length) {
    if (nested && text.startsWith('/*', at)) {
      at = endOfNested(text, at)
      code += ' '
      continue
    }
    token.lastIndex = at
    const found = token.exec(text) as RegExpExecArray
    at += found[0].length
    code += found.groups?.quote !== undefined ? ' q ' : found.groups?.comment !== undefined ? ' ' : found[0]
  }
  return code
}

function endOfNested(text: string, start: number): number {
  let depth = 0
  for (const { 0: sign, index } of text.matchAll(/\/\*|\*\//g)) {
    if (index < start) continue
    depth += sign === '/*' ? 1 : -1
    if (depth === 0) return index + 2
  }
  return text.length
}

const statementsOf = (code: string) => code.split(';').filter((statement) => statement.trim() !== '')

const tokens = [
  ...[
    "'",
    "'",
    "''",
    '"',
    '""',
    '`',
    '\\',
    "\\'",
    '\\"',
    '[',
    ']',
    ']]',
    '$$',
    '$a$',
    "q'[",
    "]'",
    "q'!",
    "!'",
    "E'",
    "e'",
  ],
  ...['--', '-- ', '#', '/*', '*/', '/*!', '/*!50000 ', '/*M!', '\n', '\r', ';', ';', ' ', ' ', ' '],
  ...[
    'SELECT',
    'SELECT 1',
    'SELECT ',
    ' FROM t',
    ' a',
    ' 1',
    ',',
    ' DROP TABLE t',
    ' DELETE FROM t',
    ' INTO x',
    "'a'",
    ' || ',
  ],
]

const guards = {
  any: compileGuards([{ kind: 'sql', arguments: ['sql'], dialect: 'any', readOnly: true }], { server: 'db' })!,
  writing: compileGuards([{ kind: 'sql', arguments: ['sql'], dialect: 'any', readOnly: false }], { server: 'db' })!,
}
const passes = async (guard: keyof typeof guards, sql: string): Promise<boolean> => {
  try {
    await guards[guard]({ sql })
    return true
  } catch {
    return false
  }
}

/** Texts of tokens, some of them repaired so that PostgreSQL reads them as one query. */
const text = fc
  .tuple(
    fc.constantFrom('SELECT ', "SELECT '", 'SELECT "', 'SELECT 1 ', "SELECT 'a' , '", "SELECT E'", 'SELECT a[', ''),
    fc.array(fc.constantFrom(...tokens), { maxLength: 12 }),
    fc.constantFrom('', "'", '"', ']', "'\n", ' --', ' -- ', '*/', "-- '", '$$', ']]', "']"),
  )
  .map(([start, middle, end]) => start + middle.join('') + end)

describe('SQL guard against independent splitters', () => {
  test('F9: what passes without a declared dialect is at most one statement to each of them, and no write', async () => {
    let passed = 0
    const some = runs(250, 50_000)
    await fc.assert(
      fc.asyncProperty(text, async (sql) => {
        if (!(await passes('any', sql))) return
        passed++
        for (const [name, splitter] of Object.entries(splitters)) {
          const code = codeOf(sql, splitter)
          expect(statementsOf(code).length, `${name}: ${sql}`).toBeLessThanOrEqual(1)
          expect(code, `${name}: ${sql}`).not.toMatch(/\b(?:drop|delete|into)\b/i)
        }
      }),
      some,
    )
    // Otherwise nothing has been compared.
    expect(passed).toBeGreaterThan(some.numRuns / 50)
  })

  test('F9: the same where writing is allowed, for the number of statements', async () => {
    await fc.assert(
      fc.asyncProperty(text, async (sql) => {
        if (!(await passes('writing', sql))) return
        for (const [name, splitter] of Object.entries(splitters)) {
          expect(statementsOf(codeOf(sql, splitter)).length, `${name}: ${sql}`).toBeLessThanOrEqual(1)
        }
      }),
      runs(250, 50_000),
    )
  })

  test('the splitters tell the dialects apart', () => {
    const count = (name: string, sql: string) => statementsOf(codeOf(sql, splitters[name]!)).length
    const sql = "SELECT '\\'' ; DROP TABLE t --'"
    expect(count('postgres', sql)).toBe(1)
    expect(count('postgres, old strings', sql)).toBe(2)
    expect(count('mysql', sql)).toBe(2)
    expect(count('mysql, no backslash', sql)).toBe(1)
    expect(count('oracle', "SELECT q'[';]' FROM t")).toBe(1)
    expect(count('sqlite', "SELECT q'[';]' FROM t")).toBe(2)
    expect(count('sql server', 'SELECT [a;]]b]')).toBe(1)
    expect(count('sqlite', 'SELECT 1 /* /* */ ; SELECT 2 /* */ */')).toBe(2)
    expect(count('postgres', 'SELECT 1 /* /* */ ; SELECT 2 /* */ */')).toBe(1)
    expect(count('mysql', 'SELECT 1 /*! ; DROP TABLE t */')).toBe(2)
    expect(count('postgres', 'SELECT $a$;$a$')).toBe(1)
  })
})
